extension Result where Failure == any Error {
    /// Runs a closure and returns its value or its error.
    static func of(_ body: () async throws -> Success) async -> Result {
        do { return .success(try await body()) } catch { return .failure(error) }
    }
}
