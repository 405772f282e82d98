package import API
internal import Postgres
internal import Primitives
package import RPC
internal import ServiceKit

extension VaultService {
  package func saveFolderItem(
    _ request: VaultV1.SaveFolderItemRequest, _ context: CallContext
  ) async throws -> VaultV1.SaveFolderItemResponse {
    let owner = try context.account().accountID
    let item = try FolderRules.check(request)
    let target = try SaveTarget(request.itemID, request.revision, field: "item_id")
    var response = try await runtime.requests.once(request.requestID, request, context) { transaction in
      let saved = try await save(item, over: target, of: owner, transaction)
      return VaultV1.SaveFolderItemResponse(item: saved.proto(title: ""))
    }
    // The answer is kept without what it tells; the request says the same again.
    response.item?.title = item.title
    response.item?.text = item.text
    return response
  }

  package func getFolderItem(
    _ request: VaultV1.GetFolderItemRequest, _ context: CallContext
  ) async throws -> VaultV1.GetFolderItemResponse {
    let owner = try context.account().accountID
    let id = try Fields.identifier(request.itemID, "item_id")
    guard let (item, text) = try await FolderReader(runtime.database).read(id, of: owner) else {
      throw ServiceError.notFound("item")
    }
    let title = try await open(item.title, StoredItem.titleBinding(id, owner), of: owner)
    return VaultV1.GetFolderItemResponse(
      item: item.proto(title: title, text: try await open(text, StoredItem.textBinding(id, owner), of: owner)))
  }

  package func listFolderItems(
    _ request: VaultV1.ListFolderItemsRequest, _ context: CallContext
  ) async throws -> VaultV1.ListFolderItemsResponse {
    let owner = try context.account().accountID
    guard VaultV1.FolderSection.allCases.contains(request.section) else {
      throw ServiceError.invalid("section", "is unknown")
    }
    var items: [VaultV1.FolderItem] = []
    for item in try await FolderReader(runtime.database).list(of: owner, request.section) {
      items.append(item.proto(title: try await open(item.title, StoredItem.titleBinding(item.id, owner), of: owner)))
    }
    // Titles are sealed, so the database cannot sort by them.
    let sorted = items.map { (key: $0.title.lowercased(), item: $0) }
      .sorted { ($0.key, $0.item.itemID) < ($1.key, $1.item.itemID) }
    return VaultV1.ListFolderItemsResponse(items: sorted.map(\.item))
  }

  package func deleteFolderItem(
    _ request: VaultV1.DeleteFolderItemRequest, _ context: CallContext
  ) async throws -> VaultV1.DeleteFolderItemResponse {
    let owner = try context.account().accountID
    let id = try Fields.identifier(request.itemID, "item_id")
    return try await runtime.requests.once(request.requestID, request, context) { transaction in
      try await AccountStore(transaction).lockOpen(owner)
      guard try await FolderStore(transaction).delete(id, of: owner) else { throw ServiceError.notFound("item") }
      return VaultV1.DeleteFolderItemResponse()
    }
  }

  private func save(
    _ item: CheckedItem, over target: SaveTarget, of owner: Identifier, _ transaction: Transaction
  ) async throws -> StoredItem {
    try await AccountStore(transaction).lockOpen(owner)
    let store = FolderStore(transaction)
    let key = try await runtime.dataKeys.key(for: owner, in: transaction)
    switch target {
    case .new:
      guard try await store.count(of: owner) < FolderRules.itemsMax else {
        throw ServiceError(.resourceExhausted, "The folder is full; delete an item first.", reason: "FOLDER_FULL")
      }
      let id = Identifier()
      return try await store.insert(id, of: owner, SealedItem(item, id, of: owner, key: key))
    case .existing(let id, let revision):
      guard let stored = try await store.revision(of: id, of: owner) else { throw ServiceError.notFound("item") }
      guard stored == revision else { throw ServiceError.revisionMismatch() }
      return try await store.update(id, SealedItem(item, id, of: owner, key: key))
    }
  }
}
