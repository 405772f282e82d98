package import Primitives

/// The `ServiceError` that `body` ends with; anything else is thrown on as it is, and no error at all is a fault.
package func refusal<Value>(_ body: () async throws -> Value) async throws -> ServiceError {
  do {
    _ = try await body()
  } catch let error as ServiceError {
    return error
  }
  throw TestSetupFault(text: "the call was expected to be refused, and was not")
}
