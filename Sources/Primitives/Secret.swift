/// A value that must never be printed: its description is a placeholder. `reveal()` is the only way to the content,
/// so that every use of it can be found.
package struct Secret<Value: Sendable>: Sendable, CustomStringConvertible, CustomDebugStringConvertible,
  CustomReflectable
{
  private let value: Value

  package init(_ value: Value) {
    self.value = value
  }

  package func reveal() -> Value { value }

  package var description: String { "[redacted]" }
  package var debugDescription: String { "[redacted]" }
  package var customMirror: Mirror { Mirror(reflecting: "[redacted]") }
}
