import Testing

@testable import protoc_gen_swift_rpc

@Suite struct GeneratorTests {
  private func message(_ name: String, of fields: [(Field.Kind, oneof: Int?)] = [], oneofs: [String] = [])
    -> MessageType
  {
    MessageType(
      name: name, fullName: "t.\(name)", comment: [],
      fields: fields.enumerated().map { index, field in
        Field(
          name: "f\(index)", number: Int32(index + 1), comment: [], kind: field.0, isRepeated: false, isPacked: false,
          oneofIndex: field.oneof)
      },
      oneofs: oneofs.map { Oneof(name: $0, comment: []) }, messages: [], enums: [], isMapEntry: false)
  }

  private func refusal(_ messages: [MessageType]) -> String? {
    do {
      _ = try Types([
        File(name: "t.proto", package: "t", messages: messages, enums: [], services: [], imports: [], serialized: [])
      ])
      return nil
    } catch let error as SchemaError {
      return error.text
    } catch {
      return "\(error)"
    }
  }

  @Test("Generator refuses recursive message types, direct or through others, and names the way round")
  func recursion() throws {
    #expect(refusal([message("A", of: [(.message("t.B"), nil)]), message("B")]) == nil)
    let direct = try #require(refusal([message("A", of: [(.message("t.A"), nil)])]))
    #expect(direct.hasSuffix("t.A -> t.A"))
    let indirect = try #require(
      refusal([
        message("A", of: [(.string, nil), (.message("t.B"), nil)]), message("B", of: [(.message("t.C"), 0)]),
        message("C", of: [(.message("t.A"), nil)]),
      ]))
    #expect(indirect.hasSuffix("t.A -> t.B -> t.C -> t.A"))
  }

  @Test("Generator takes 128 fields and refuses 129")
  func fieldsMax() {
    #expect(refusal([message("A", of: Array(repeating: (.bool, nil), count: 128))]) == nil)
    #expect(refusal([message("A", of: Array(repeating: (.bool, nil), count: 129))]) == "t.A: more than 128 fields")
  }

  @Test("Generator refuses type names that Swift reserves")
  func reservedNames() {
    #expect(refusal([message("Type")]) != nil)
    #expect(refusal([message("Kind")]) == nil)
  }

  @Test("Generator names packages, fields, values and calls as Swift does")
  func names() {
    #expect(Names.namespace(ofPackage: "afterthoughts.vault.v1") == "VaultV1")
    #expect(Names.namespace(ofPackage: "google.protobuf") == "GoogleProtobuf")
    #expect(Names.namespace(ofPackage: "grpc.health.v1") == "GRPCHealthV1")
    #expect(Names.namespace(ofPackage: "google.rpc") == "GoogleRPC")
    #expect(Names.property("recipient_id") == "recipientID")
    #expect(Names.property("group_ids") == "groupIDs")
    #expect(Names.property("id") == "id")
    #expect(Names.property("valid") == "valid")
    #expect(Names.property("create_time") == "createTime")
    #expect(Names.enumCase("MESSAGE_KIND_LETTER", of: "MessageKind") == "letter")
    #expect(Names.enumCase("MESSAGE_KIND_YEARLY_NOTE", of: "MessageKind") == "yearlyNote")
    #expect(Names.enumCase("SERVING", of: "ServingStatus") == "serving")
    #expect(Names.enumCase("SIZE_2XL", of: "Size") == "_2xl")
    #expect(Names.function("SaveToVault") == "saveToVault")
    #expect(Names.function("URLFor") == "urlFor")
    #expect(Names.function("ID") == "id")
  }

  @Test("Generator spells C names as protoc-c does")
  func cNames() {
    #expect(Names.cType("afterthoughts.vault.v1.SaveToVaultRequest") == "Afterthoughts__Vault__V1__SaveToVaultRequest")
    #expect(Names.cFunction("a.v1.SaveToVaultRequest") == "a__v1__save_to_vault_request")
    #expect(Names.cFunction("a.URLList") == "a__urllist")
    #expect(Names.cMember("default") == "default_")
    #expect(Names.cMember("type") == "type")
  }
}
