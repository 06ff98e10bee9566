"""The fields of an index: a table beside its vectors, and the expressions that choose its rows."""

from __future__ import annotations

import ast
import functools
import operator
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Fields: TypeAlias = pa.Table | Mapping[str, Sequence[Any]]
# Longer expressions, which come from other machines too, could exhaust Python's parser.
_LONGEST = 10_000
_GRAMMAR = (
    "where: expected FIELD == VALUE, also with !=, <, <=, >, >=, in, not in, is None, joined by "
    "and, or, not"
)
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def field_table(fields: Fields, rows: int) -> pa.Table:
    """Fields as a table; the ids become texts, which must differ."""
    table = fields if isinstance(fields, pa.Table) else pa.table(dict(fields))
    if table.num_rows != rows:
        raise ValueError(f"fields: expected {rows:,} rows, received {table.num_rows:,}.")
    for place, name in enumerate(table.column_names):
        column = table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        column = column.cast(pa.large_string()) if name == id_name(table) else column
        table = table.set_column(place, name, column)
    repeated = [id for id, count in Counter(ids(table)).items() if count > 1 or id is None]
    if repeated:
        raise ValueError(f"fields: expected different ids, found {repeated[0]!r} twice or missing.")
    return table


def id_name(table: pa.Table) -> str | None:
    """The column whose texts name the rows: `id` or `_id`, in any case."""
    return next((name for name in table.column_names if name.casefold() in ("id", "_id")), None)


def ids(table: pa.Table | None) -> list[str]:
    """The ids of the rows; none if the table has no column of ids."""
    name = None if table is None else id_name(table)
    return [] if table is None or name is None else table[name].to_pylist()


def joined_fields(old: pa.Table | None, new: Fields | None, rows: int) -> pa.Table | None:
    """The rows of a table, and new ones, which may lack fields but have no others."""
    table = field_table({} if new is None else new, 0 if new is None else rows)
    schema = pa.schema([]) if old is None else old.schema
    if unknown := sorted({*table.column_names} - {*schema.names}):
        raise ValueError(f"fields: expected some of {schema.names}, received {unknown}.")
    if old is None:
        return None
    if id_name(old) is not None and id_name(table) is None:
        raise ValueError(f"fields: expected {id_name(old)!r}, which names the rows.")
    arrays = [
        table[field.name].cast(field.type)
        if field.name in table.column_names
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.concat_tables([old, pa.table(arrays, schema=schema)])


def matching_rows(table: pa.Table, where: str | pc.Expression) -> np.ndarray:
    """The rows for which an expression is true, int64, ascending.

    A missing value is not equal to any value, and neither less nor greater.
    """
    rows = "\0row"
    numbered = table.append_column(rows, pa.array(np.arange(table.num_rows)))
    try:
        expression = _parsed(where, table.schema) if isinstance(where, str) else where
        return np.sort(numbered.filter(expression)[rows].to_numpy())
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise ValueError(f"{_GRAMMAR}; received {str(where)!r:.200}: {error}") from error


def _parsed(where: str, schema: pa.Schema) -> pc.Expression:
    if len(where) > _LONGEST:
        raise ValueError(f"where: expected at most {_LONGEST:,} characters.")
    try:
        return _expression(ast.parse(where.strip(), mode="eval").body, schema)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"{_GRAMMAR}; received {where!r:.200}") from error


def _expression(node: ast.expr, schema: pa.Schema) -> pc.Expression:
    match node:
        case ast.BoolOp(op=operation, values=values):
            join = operator.and_ if isinstance(operation, ast.And) else operator.or_
            return functools.reduce(join, [_expression(value, schema) for value in values])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return ~_expression(operand, schema)
        case ast.Compare(
            left=ast.Name(id=name) | ast.Constant(value=str(name)), ops=[test], comparators=[right]
        ):
            if name not in schema.names:
                raise ValueError(f"where: expected one of {schema.names}, received {name!r}.")
            try:
                value = ast.literal_eval(right)
            except ValueError as error:
                literals = "a text in quotes, a number, True, False, None or a list"
                received = ast.unparse(right)
                raise ValueError(f"where: expected {literals}, received {received:.80}") from error
            return _comparison(schema.field(name), type(test), value)
    raise ValueError(f"{_GRAMMAR}; received {ast.unparse(node)!r:.200}")


def _comparison(field: pa.Field, test: type[ast.cmpop], value: Any) -> pc.Expression:
    """The test of a field: true or false, never unknown."""
    column = pc.field(field.name)
    if value is None and test in (ast.Is, ast.IsNot, ast.Eq, ast.NotEq):
        is_missing = column.is_null()
        return is_missing if test in (ast.Is, ast.Eq) else ~is_missing
    if test in (ast.In, ast.NotIn) and isinstance(value, (list, tuple, set)):
        equal = [_comparison(field, ast.Eq, one) for one in value]
        is_in = functools.reduce(operator.or_, equal, pc.scalar(False))
        return ~is_in if test is ast.NotIn else is_in
    if test is ast.NotEq:
        return ~_comparison(field, ast.Eq, value)
    if test not in _COMPARISONS:
        raise ValueError(f"{_GRAMMAR}; received {test.__name__} {value!r:.80}")
    return pc.coalesce(_COMPARISONS[test](column, _literal(value, field)), pc.scalar(False))


def _literal(value: Any, field: pa.Field) -> pc.Expression:
    """A value in the type of a field, as far as the comparison needs it."""
    is_number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    is_number = is_number or pa.types.is_decimal(field.type)
    expected: Any = (int, float) if is_number else str
    expected = bool if pa.types.is_boolean(field.type) else expected
    if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
        raise ValueError(f"where: {field.name!r} is of type {field.type}, received {value!r:.80}.")
    scalar = pa.scalar(value)
    if pa.types.is_floating(field.type) or pa.types.is_temporal(field.type):
        scalar = scalar.cast(field.type)
    return pc.scalar(scalar)
