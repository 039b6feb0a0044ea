"""The definition of the toy study."""

from fairness_pipeline.studies.toy.profile import Toy, ToyPart

from fairness_pipeline.project.study import Study

STUDY = Study(
    name="toy",
    title="Toy",
    section=Toy,
    part=ToyPart,
    subject="die",
    table="toy_significance",
    report="toy_report",
    asked="rolls",
    identity=("dimension", "die", "measure"),
    headings=("Eyes",),
    heading=lambda row: "Eyes",
    label=lambda row: "Eyes",
    finding=lambda part, key, row: f"{key['die']}: {abs(row['difference']):.2g} eyes more",
    groups=lambda part, key: ("left hand", "right hand"),
)
