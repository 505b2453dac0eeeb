/// A client under measurement, with one function per scenario.
///
/// Every call succeeds with a 2xx status or throws.
public protocol Client: Sendable {
    /// Fetches the URL and collects the body.
    /// - Returns: The body's first byte, if it has one.
    func get() async throws -> UInt8?

    /// Fetches the URL and decodes the body as an ``Article``, with ``Article/init(json:)`` or the same decoder.
    func decode() async throws

    /// Fetches the URL and discards the body while it arrives.
    /// - Returns: The number of body bytes.
    func discard() async throws -> Int

    /// Fetches the URL into a file, which may already exist.
    func save(to path: String) async throws

    /// Uploads a file to the URL with PUT.
    func upload(from path: String) async throws
}

/// The error of a client that does not support the scenario.
public struct UnsupportedScenario: Error {
    /// Creates the error, which has no details.
    public init() {}
}

extension Client {
    /// Throws ``UnsupportedScenario``, the default.
    public func decode() async throws { throw UnsupportedScenario() }
    /// Throws ``UnsupportedScenario``, the default.
    public func save(to path: String) async throws { throw UnsupportedScenario() }
    /// Throws ``UnsupportedScenario``, the default.
    public func upload(from path: String) async throws { throw UnsupportedScenario() }
}
