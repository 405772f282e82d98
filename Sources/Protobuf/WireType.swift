package import CProtobufC

/// A message type as libprotobuf-c describes it.
package struct WireType: @unchecked Sendable {
  // Safety: the descriptor is a constant of the generated C, valid as long as the program.
  let descriptor: UnsafePointer<ProtobufCMessageDescriptor>

  /// The type of a message that its generated `__init` has filled in.
  package init(_ prototype: ProtobufCMessage) {
    descriptor = prototype.descriptor
  }
}
