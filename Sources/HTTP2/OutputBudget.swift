internal import Synchronization

/// Bytes that wait to be sent on all connections of a server together.
package final class OutputBudget: Sendable {
  private let bytesMax: Int
  private let bytes = Atomic(0)

  package init(bytesMax: Int) {
    self.bytesMax = bytesMax
  }

  /// Bytes held now, in steps of 64 KiB a connection.
  package var bytesHeld: Int { bytes.load(ordering: .relaxed) }

  /// Adds to what is held (or takes off it); false when the sum is above the limit by that.
  func add(_ count: Int) -> Bool {
    let (_, sum) = bytes.add(count, ordering: .relaxed)
    return count <= 0 || sum <= bytesMax
  }
}
