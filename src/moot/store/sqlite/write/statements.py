"""Statements of the writer; one for many rows has the number of its columns."""

from moot.store.sqlite.statements import BulkStatement, load_statements

SQL = load_statements("writer")

PUT_HEADS = BulkStatement(SQL["PUT_HEADS"], 5)
ADD_EVENTS = BulkStatement(SQL["ADD_EVENTS"], 4)
PUT_RUNS = BulkStatement(SQL["PUT_RUNS"], 21)
PUT_WORK = BulkStatement(SQL["PUT_WORK"], 2)
DROP_WORK = BulkStatement(SQL["DROP_WORK"], 1)
PUT_SNAPSHOTS = BulkStatement(SQL["PUT_SNAPSHOTS"], 4)
PUT_MESSAGES = BulkStatement(SQL["PUT_MESSAGES"], 3)
ADD_TEXTS = BulkStatement(SQL["ADD_TEXTS"], 4)
PUT_EFFECTS = BulkStatement(SQL["PUT_EFFECTS"], 9)
ADD_RECEIPTS = BulkStatement(SQL["ADD_RECEIPTS"], 8)
PUT_ARTIFACTS = BulkStatement(SQL["PUT_ARTIFACTS"], 4)
SEAL = BulkStatement(SQL["SEAL"], 4)
FORGET_SEALED = BulkStatement(SQL["FORGET_SEALED"], 3)
UNSEAL = BulkStatement(SQL["UNSEAL"], 2)
