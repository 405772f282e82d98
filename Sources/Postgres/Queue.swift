/// First in, first out, without moving elements on every removal.
struct Queue<Element> {
  private var elements: ContiguousArray<Element?> = []
  private var head = 0

  var count: Int { elements.count - head }
  var isEmpty: Bool { count == 0 }
  var first: Element? { isEmpty ? nil : elements[head] }

  mutating func append(_ element: Element) {
    elements.append(element)
  }

  mutating func popFirst() -> Element? {
    guard !isEmpty else { return nil }
    let element = elements[head]
    elements[head] = nil
    head += 1
    if head == elements.count {
      elements.removeAll(keepingCapacity: true)
      head = 0
    } else if head > 256, head * 2 > elements.count {
      elements.removeFirst(head)
      head = 0
    }
    return element
  }

  /// Takes everything out.
  mutating func removeAll() -> [Element] {
    let all = elements[head...].compactMap { $0 }
    elements = []
    head = 0
    return all
  }

  mutating func removeAll(where matches: (Element) -> Bool) {
    elements = ContiguousArray(elements[head...].filter { $0.map { !matches($0) } ?? false })
    head = 0
  }
}
