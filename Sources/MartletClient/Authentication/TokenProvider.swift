/// Where bearer tokens come from (RFC 6750).
///
/// Wrap it in ``SingleFlightTokens``, so that it is asked once however many calls need a token at the same time.
public protocol TokenProvider: Sendable {
    /// The token to use now: from memory, from a file, or from the server that issues them.
    func token() async throws -> String

    /// A token in place of one that a server answered with 401.
    ///
    /// - Parameter token: The one that was refused.
    func refresh(after token: String) async throws -> String
}
