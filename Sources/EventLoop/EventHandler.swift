/// What a descriptor is watched for, and what it has become ready for.
package struct Interest: OptionSet, Sendable {
  package let rawValue: UInt8

  package init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  package static let readable = Interest(rawValue: 1)
  package static let writable = Interest(rawValue: 2)
}

/// The owner of a registered descriptor.
package protocol EventHandler: AnyObject {
  /// Called on the loop, level-triggered; a hang-up or an error on the descriptor sets both bits.
  func ready(_ events: Interest)

  /// The loop is about to end: give back descriptors, fail what still waits. Called once, on the loop.
  func loopEnds()
}

extension EventHandler {
  package func loopEnds() {}
}

/// Work at the end of a turn without a closure's allocation; see `EventLoop.afterTurn(notify:)`.
package protocol TurnEndHandler: AnyObject {
  /// Called on the loop, once for each time it was asked for.
  func turnEnds()
}
