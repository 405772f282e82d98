private import CPostgres

/// One row of an answer. It reads its fields straight from the answer's memory, which lives as long as any of its
/// rows does.
package struct Row: Sendable {
  private let result: StatementResult
  private let index: Int32

  init(_ result: StatementResult, _ index: Int) {
    self.result = result
    self.index = Int32(index)
  }

  package var columnCount: Int { result.columnCount }

  /// All columns, in order: `let (id, title) = try row.decode((Identifier, String?).self)`. Throws `RowError` when
  /// their number or a type differs, or when a NULL meets a type that is not optional.
  package func decode<each Column: PostgresCodable>(
    _ types: (repeat each Column).Type = (repeat each Column).self
  ) throws -> (repeat each Column) {
    var expected = 0
    for _ in repeat (each Column).self { expected += 1 }
    guard expected == result.columnCount else {
      throw RowError.columnCount(expected: expected, found: result.columnCount)
    }
    var column = 0
    return (repeat try next((each Column).self, &column))
  }

  /// The column at `position`, counted from 0.
  package func decode<Column: PostgresCodable>(_ type: Column.Type, at position: Int) throws -> Column {
    guard position >= 0, position < result.columnCount else {
      throw RowError.columnCount(expected: position + 1, found: result.columnCount)
    }
    let found = result.type(at: position)
    do throws(FieldFault) {
      guard Column.reads(found) else { throw .wrongType }
      return try Column.decode(result.field(row: index, column: Int32(position)), found)
    } catch {
      throw RowError.field(
        error, name: result.name(at: position), position: position, expected: Column.postgresType, found: found)
    }
  }

  private func next<Column: PostgresCodable>(_ type: Column.Type, _ column: inout Int) throws -> Column {
    defer { column += 1 }
    return try decode(type, at: column)
  }
}

/// An answer does not have the shape the code expects: a bug in a statement or a schema that has moved on. Holds no
/// values.
package enum RowError: Error, Sendable, CustomStringConvertible {
  case columnCount(expected: Int, found: Int)
  case field(FieldFault, name: String, position: Int, expected: PostgresType, found: PostgresType)

  package var description: String {
    switch self {
    case .columnCount(let expected, let found):
      "the row has \(found) columns where \(expected) are read"
    case .field(.isNull, let name, let position, _, _):
      "column \(position) (\(name)) is NULL where a value is read"
    case .field(.wrongType, let name, let position, let expected, let found):
      "column \(position) (\(name)) is \(found) where \(expected) is read"
    case .field(.malformed, let name, let position, let expected, let found):
      "column \(position) (\(name), \(found)) holds what cannot be read as \(expected)"
    }
  }
}

/// The answer to one statement.
///
/// Safety: a PGresult is never written to after libpq has returned it, so that any thread may read it; it is freed
/// once, when nothing refers to it any more.
final class StatementResult: @unchecked Sendable {
  private let handle: OpaquePointer
  let columnCount: Int

  init(_ handle: OpaquePointer) {
    self.handle = handle
    columnCount = Int(PQnfields(handle))
  }

  deinit { PQclear(handle) }

  var rowCount: Int { Int(PQntuples(handle)) }

  var rows: [Row] { (0..<rowCount).map { Row(self, $0) } }

  /// Rows written, or read for a SELECT; 0 for statements that count nothing.
  var affectedCount: Int { PQcmdTuples(handle).flatMap { Int(String(cString: $0)) } ?? 0 }

  /// What the server says it did, such as `COMMIT`.
  var command: String { String(cString: PQcmdStatus(handle)) }

  func type(at column: Int) -> PostgresType { PostgresType(rawValue: PQftype(handle, Int32(column))) }

  func name(at column: Int) -> String { PQfname(handle, Int32(column)).map { String(cString: $0) } ?? "" }

  /// nil for NULL; valid while this object lives.
  func field(row: Int32, column: Int32) -> UnsafeRawBufferPointer? {
    guard PQgetisnull(handle, row, column) == 0 else { return nil }
    return UnsafeRawBufferPointer(
      start: PQgetvalue(handle, row, column), count: Int(PQgetlength(handle, row, column)))
  }
}
