internal import CZlib

/// Whole messages in gzip's format and back.
package enum Gzip {
  package enum InflateError: Error, Sendable {
    /// More comes out than the caller takes.
    case tooLarge
    /// No gzip, a cut or a damaged one, or one with something behind it.
    case malformed
  }

  private static let chunkBytes = 16 << 10

  /// `bytes` from `start` on, compressed, behind `start` zero bytes for the caller to fill in; nil when that would save
  /// nothing.
  package static func compress(_ bytes: [UInt8], from start: Int) -> [UInt8]? {
    precondition(0...bytes.count ~= start)
    var stream = z_stream()
    guard zlib_begin_deflate(&stream) == Z_OK else { return nil }
    defer { deflateEnd(&stream) }
    var isWhole = false
    let output = [UInt8](unsafeUninitializedCapacity: bytes.count) { output, count in
      output.initialize(repeating: 0)
      count = bytes.count
      // Safety: zlib reads and writes within the bounds it is told, and writes through no input pointer.
      bytes.withUnsafeBufferPointer { input in
        guard let source = input.baseAddress, let target = output.baseAddress else { return }
        stream.next_in = UnsafeMutablePointer(mutating: source) + start
        stream.avail_in = UInt32(bytes.count - start)
        stream.next_out = target + start
        stream.avail_out = UInt32(bytes.count - start)
        isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END
      }
      if isWhole { count = start + Int(stream.total_out) }
    }
    return isWhole && output.count < bytes.count ? output : nil
  }

  /// The content of one gzip member. Stops as soon as more than `bytesMax` bytes have come out, whatever the input
  /// promises.
  package static func inflate(_ bytes: [UInt8], bytesMax: Int) throws(InflateError) -> [UInt8] {
    var stream = z_stream()
    guard zlib_begin_inflate(&stream) == Z_OK else { throw .malformed }
    defer { inflateEnd(&stream) }
    var output: [UInt8] = []
    output.reserveCapacity(min(bytesMax, bytes.count * 3))
    var result = Z_OK
    // Safety: zlib reads and writes within the bounds it is told, and writes through no input pointer.
    bytes.withUnsafeBufferPointer { input in
      withUnsafeTemporaryAllocation(of: UInt8.self, capacity: chunkBytes) { chunk in
        guard let source = input.baseAddress else { return }
        stream.next_in = UnsafeMutablePointer(mutating: source)
        stream.avail_in = UInt32(input.count)
        repeat {
          stream.next_out = chunk.baseAddress
          stream.avail_out = UInt32(chunk.count)
          result = CZlib.inflate(&stream, Z_NO_FLUSH)
          output.append(contentsOf: chunk[..<(chunk.count - Int(stream.avail_out))])
        } while result == Z_OK && output.count <= bytesMax
      }
    }
    guard output.count <= bytesMax else { throw .tooLarge }
    guard result == Z_STREAM_END, stream.avail_in == 0 else { throw .malformed }
    return output
  }
}
