extension Result where Failure == any Error {
    /// What came of something, for those who take either.
    static func of(_ body: () async throws -> Success) async -> Result {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
