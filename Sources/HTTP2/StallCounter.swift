/// Counts the looks at something that waits and gets nowhere. Pure.
struct StallCounter: Sendable {
  private var progress = 0
  private var looks = 0

  /// The looks in a row, this one included, that found it waiting at the same place. The first may come right after the
  /// wait began.
  mutating func look(isWaiting: Bool, progress: Int) -> Int {
    looks = isWaiting && progress == self.progress ? looks + 1 : 0
    self.progress = progress
    return looks
  }
}
