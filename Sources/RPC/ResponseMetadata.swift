internal import HTTP2
internal import Primitives
internal import Synchronization

/// The custom metadata of a response: at a server what the handler adds, at a client what came.
package final class ResponseMetadata: Sendable {
  private struct Lists {
    var initial = Metadata()
    var trailing = Metadata()
  }

  private let lists = Mutex(Lists())

  package init() {}

  /// Goes ahead of the first message; at a server, what is added after that is not sent.
  package var initial: Metadata {
    get { lists.withLock { $0.initial } }
    set { lists.withLock { $0.initial = newValue } }
  }

  /// Goes with the status, whatever that is.
  package var trailing: Metadata {
    get { lists.withLock { $0.trailing } }
    set { lists.withLock { $0.trailing = newValue } }
  }
}

extension HeaderList {
  /// Adds custom metadata; binary values as base64 without padding.
  mutating func append(_ metadata: Metadata) {
    for pair in metadata.pairs {
      switch pair.value {
      case .text(let text): append(pair.name, text, isSensitive: pair.name == "authorization")
      case .binary(let bytes): append(pair.name, Base64.encode(bytes, alphabet: .standard))
      }
    }
  }
}
