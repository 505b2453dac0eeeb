/// A client under measurement: what each scenario asks of it.
///
/// Every call succeeds with a status of 2xx or throws.
public protocol Client: Sendable {
    /// Fetches the URL and collects the body.
    /// - Returns: The body's first byte, if it has one.
    func get() async throws -> UInt8?

    /// Fetches the URL and decodes the body as an ``Article``, by ``Article/init(json:)`` or the same decoder.
    func decode() async throws

    /// Fetches the URL and drops the body as it comes.
    /// - Returns: The bytes of the body.
    func discard() async throws -> Int

    /// Fetches the URL into a file, which may be there already.
    func save(to path: String) async throws

    /// Puts a file at the URL.
    func upload(from path: String) async throws
}

/// A scenario that a client has no part in.
public struct UnsupportedScenario: Error {
    /// The scenario is none of this client's.
    public init() {}
}

extension Client {
    /// Not offered.
    public func decode() async throws { throw UnsupportedScenario() }
    /// Not offered.
    public func save(to path: String) async throws { throw UnsupportedScenario() }
    /// Not offered.
    public func upload(from path: String) async throws { throw UnsupportedScenario() }
}
