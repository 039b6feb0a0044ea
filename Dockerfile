# One image for all parts: the command, Dagster's servers, the runs and the nodes of a Ray cluster. All nodes of a
# cluster must have the same versions, so that the same bytes come out; one image sees to that.
#
#     docker build --tag fairness-pipeline:0.2.0 .
#
# Each library must have the hash that requirements-run.txt knows. PyTorch comes in builds with and without CUDA, as one
# version on several package indexes. Without an argument it comes from Python's usual index, with CUDA on x86, and the
# image is several gigabytes larger; CUDA's libraries come in the versions that PyTorch names, without a hash from here.
# The argument TORCH_INDEX is the address of another index: PyTorch's page "Get Started" shows one for machines without a
# GPU, and one for each version of CUDA (what follows --index-url there). The hash of the build without CUDA, for x86, is
# known (requirements-cpu.txt); for another build give TORCH_HASH, such as sha256:... of its file.
#
#     docker build --build-arg TORCH_INDEX=ADDRESS --tag fairness-pipeline:0.2.0 .
#
# The base image is named by its tag, as no registry could be asked for its digest when this was written. To pin it:
# --build-arg PYTHON_IMAGE=python:3.11-slim-bookworm@sha256:... (docker buildx imagetools inspect tells it).

# Python 3.11, as the tests use it with the versions of constraints.txt.
ARG PYTHON_IMAGE=python:3.11-slim-bookworm
FROM ${PYTHON_IMAGE} AS libraries
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1
# `ps` tells a process from a later one with the same number; locks and records of runs rely on it.
RUN apt-get update && apt-get install --yes --no-install-recommends procps && rm -rf /var/lib/apt/lists/*
WORKDIR /build
# Libraries come before the code, so that a change of the code does not install them again.
COPY requirements-cpu.txt requirements-run.txt ./
ARG TORCH_INDEX=""
ARG TORCH_HASH=""
RUN if [ -n "$TORCH_HASH" ]; then echo "torch==2.13.0 --hash=$TORCH_HASH" > requirements-cpu.txt; fi; \
    if [ -n "$TORCH_INDEX" ]; then \
        pip install --require-hashes --no-deps --index-url "$TORCH_INDEX" --requirement requirements-cpu.txt; \
    fi
# With Ray, Postgres, and what Dagster needs to start runs on Kubernetes.
RUN pip install --require-hashes --no-deps --requirement requirements-run.txt \
    && if [ -z "$TORCH_INDEX" ]; then pip install torch==2.13.0; fi

# The package as a wheel. Nothing of this stage is in the image but that file.
FROM libraries AS package
COPY pyproject.toml README.md LICENSE ./
COPY data data
COPY fairness_pipeline fairness_pipeline
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /wheels .

FROM libraries
COPY --from=package /wheels /wheels
RUN pip install --no-deps /wheels/*.whl && rm -rf /build /wheels
# The number is that of the lake's owner; docs/helm-values.yaml names it too. The second folder is DAGSTER_HOME there.
RUN useradd --uid 1000 --create-home fairness \
    && install --directory --owner fairness --group fairness /lake /opt/dagster/dagster_home
ENV FAIRNESS_HOME=/lake
# Whoever starts a container without a volume keeps what was made all the same.
VOLUME /lake
USER fairness
# A folder without modules: Dagster looks for modules where it starts.
WORKDIR /home/fairness
CMD ["fairness-pipeline", "--help"]
