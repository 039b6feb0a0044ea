"""Postgres, where a team keeps Dagster's records and the lake's locks."""

import os
import re
import uuid
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from fairness_pipeline.foundation.errors import FairnessError
from fairness_pipeline.foundation.plain_text import first_line

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

POSTGRES = "FAIRNESS_POSTGRES"
"""The environment variable with the address of the database: postgresql://user:password@host:5432/database."""
_SECONDS = 5
_ADDRESS = re.compile(r"postgres(?:ql)?://(?:[^:@/?#\[\]]*(?::(?:[^:@/?#\[\]%]|%[0-9A-Fa-f]{2})*)?@)?[^@\[\]\s]*")
_NO_LIMIT = "select set_config(name, '0', false) from pg_settings where name = 'idle_session_timeout'"
"""A lock ends with its session, which is idle while a partition is made."""


def connect(name: str) -> "Connection":
    """A connection to the database that `FAIRNESS_POSTGRES` names.

    Args:
        name: What the database shows as the connection's name.

    Raises:
        FairnessError: the database does not answer within five seconds, or refuses, or its library is not installed.
    """
    address = os.environ[POSTGRES]
    if not _ADDRESS.fullmatch(address):  # not shown: it holds a password
        raise FairnessError(
            f"{POSTGRES}: expected postgresql://user:password@host:5432/database; write the characters : @ / ? # [ ] % "
            "of a password as %3A %40 %2F %3F %23 %5B %5D %25"
        )
    try:
        import psycopg2
    except ImportError:
        raise FairnessError(
            f"{POSTGRES} is set, but Postgres' library is not installed; run: pip install 'fairness-pipeline[postgres]'"
        ) from None
    try:
        # Keepalives: a holder whose machine vanished must not keep its locks for the two hours of the system's default.
        connection = psycopg2.connect(
            address,
            application_name=name,
            connect_timeout=_SECONDS,
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=4,
        )
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(_NO_LIMIT)
        return connection
    except psycopg2.Error as error:
        raise FairnessError(
            f"{POSTGRES}: {describe_database()} cannot be used: {describe_error(error)}; start it, create it "
            "(createdb), or correct the address"
        ) from None


def check_postgres(lake: str, profile: str) -> str:
    """Checks that the database can be used, and holds the records of no other workspace.

    Args:
        lake: The lake's own name; the database stores it.
        profile: The workspace's profile.

    Returns:
        The database's own name, which its first use gave it.

    Raises:
        FairnessError: it cannot be used, or belongs to another workspace.
    """
    import psycopg2

    connection = connect("fairness-pipeline")
    try:
        with connection.cursor() as cursor:
            # Two commands may both be the first.
            cursor.execute("begin; select pg_advisory_xact_lock(hashtext('fairness_pipeline'))")
            cursor.execute("create table if not exists fairness_pipeline (lake text, profile text, name text)")
            cursor.execute("select lake, profile, name from fairness_pipeline")
            row = cursor.fetchone()
            if row is None:
                row = lake, profile, uuid.uuid4().hex
                cursor.execute("insert into fairness_pipeline values (%s, %s, %s)", row)
            cursor.execute("commit")
    except psycopg2.Error as error:
        raise FairnessError(f"{POSTGRES}: {describe_database()} cannot be used: {describe_error(error)}") from None
    finally:
        connection.close()
    if row[0] != lake:
        raise FairnessError(
            f"{POSTGRES}: {describe_database()} holds the records of another workspace (profile '{row[1]}'), whose "
            "assets have the same names; make a database for each (createdb), and name it here"
        )
    return str(row[2])


def describe_database() -> str:
    """The database in words, without its password."""
    try:
        address = urlsplit(os.environ.get(POSTGRES, ""))
        host, port = address.hostname, address.port or 5432
    except ValueError:  # a port that is no number
        return "the database"
    return f"the database{address.path.replace('/', ' ', 1)} at {host}:{port}" if host else "the database"


def describe_error(error: BaseException) -> str:
    """The first line of the database's message, without the address's password.

    Args:
        error: An error of the database's library, or of one that wraps it.
    """
    while inner := getattr(error, "orig", None) or error.__cause__:
        error = inner
    text = first_line(error)
    address = os.environ.get(POSTGRES, "")
    password = urlsplit(address).password if _ADDRESS.fullmatch(address) else None
    for secret in filter(None, [password, password and unquote(password)]):
        text = text.replace(secret, "...")
    return text
