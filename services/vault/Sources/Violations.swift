internal import Primitives

/// Gathers what is wrong with a request, so that one answer names all of it, up to a number that still fits into an
/// answer.
struct Violations {
  private static let countMax = 20
  private(set) var list: [ServiceError.FieldViolation] = []

  mutating func add(_ field: String, _ description: String) {
    guard list.count < Violations.countMax else { return }
    list.append(.init(field: field, description: description))
  }

  /// What `body` returns; nil when it throws, with what it names added.
  mutating func attempt<Value>(_ body: () throws(ServiceError) -> Value) -> Value? {
    do {
      return try body()
    } catch {
      for violation in error.violations { add(violation.field, violation.description) }
      return nil
    }
  }

  /// Throws INVALID_ARGUMENT when there is anything.
  func check() throws(ServiceError) {
    guard list.isEmpty else { throw ServiceError.invalid(list) }
  }
}
