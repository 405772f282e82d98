import Primitives
import Testing

struct SecretTests {
  private struct Holder {
    let name = "holder"
    let password = Secret("hunter2")
    let key = Secret<[UInt8]>([104, 117, 110])
  }

  @Test("Primitives secrets are never printed, alone or inside something else")
  func printing() {
    let secret = Secret("hunter2")
    var dumped = ""
    dump(secret, to: &dumped)
    dump(Holder(), to: &dumped)
    dump([secret], to: &dumped)
    let texts = [
      "\(secret)", String(describing: secret), String(reflecting: secret), "\(Holder())", "\([secret])", dumped,
      "\(Optional(secret) as Any)", "\(["a": secret])", "\(Mirror(reflecting: secret).children.map { "\($0.value)" })",
      "\(ServiceError.internal(cause: Failure(secret: secret)))",
    ]
    for text in texts { #expect(!text.contains("hunter2") && !text.contains("104, 117"), "\(text)") }
    #expect("\(secret)" == "[redacted]")
    #expect(secret.reveal() == "hunter2")
  }

  private struct Failure: Error {
    let secret: Secret<String>
  }
}

struct ServiceErrorTests {
  @Test("Primitives errors name the fields they refuse")
  func fields() {
    let error = ServiceError.invalid([
      .init(field: "a.b", description: "is bad"), .init(field: "c", description: "is worse"),
    ])
    #expect(error.code == .invalidArgument && error.reason == "INVALID_FIELD")
    #expect(error.message == "a.b: is bad; c: is worse")
    #expect(error.violations.map(\.field) == ["a.b", "c"])
  }

  @Test("Primitives errors have gRPC's numbers and names")
  func codes() {
    #expect(ServiceError.Code.allCases.map(\.rawValue) == Array(1...16))
    #expect(Set(ServiceError.Code.allCases.map(\.name)).count == 16)
    #expect(ServiceError.Code.unauthenticated.rawValue == 16 && ServiceError.Code.notFound.name == "NOT_FOUND")
  }

  @Test("Primitives errors keep their cause out of the message")
  func cause() {
    struct Inner: Error {}
    let error = ServiceError.internal(cause: Inner())
    #expect(!error.message.contains("Inner") && error.description.contains("Inner"))
  }
}
