package import API
internal import Postgres
internal import Primitives
package import RPC
internal import ServiceKit

extension IdentityService {
  package func getLegalDocument(
    _ request: IdentityV1.GetLegalDocumentRequest, _ context: CallContext
  ) async throws -> IdentityV1.GetLegalDocumentResponse {
    let kind: String
    switch request.kind {
    case .terms: kind = "terms"
    case .privacyPolicy: kind = "privacy_policy"
    default: throw ServiceError.notFound("legal document")
    }
    guard let current = try await LegalReader(database: runtime.database).current(kind) else {
      throw ServiceError.notFound("legal document")
    }
    return IdentityV1.GetLegalDocumentResponse(
      version: current.version, text: current.text, publishTime: GoogleProtobuf.Timestamp(current.publishTime))
  }
}

/// Reads of the legal texts.
struct LegalReader: Sendable {
  let database: Database

  /// The newest published version of a document.
  func current(_ kind: String) async throws -> (version: Int32, text: String, publishTime: Instant)? {
    let rows = try await database.query(
      """
      SELECT version, text, publish_time FROM legal_versions
      WHERE kind = \(kind) AND publish_time <= now() ORDER BY version DESC LIMIT 1
      """)
    guard let row = rows.first else { return nil }
    let (version, text, publishTime) = try row.decode((Int32, String, Instant).self)
    return (version, text, publishTime)
  }

  /// 0 when none is published.
  func currentVersion(_ kind: String) async throws -> Int32 {
    try await database.query(
      """
      SELECT version FROM legal_versions
      WHERE kind = \(kind) AND publish_time <= now() ORDER BY version DESC LIMIT 1
      """
    ).first?.decode(Int32.self, at: 0) ?? 0
  }
}
