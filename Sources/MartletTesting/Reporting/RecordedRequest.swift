/// The head of a request that a test origin received.
public struct RecordedRequest: Sendable, Hashable {
    /// The connection it came on, from 1.
    public let connectionNumber: Int
    /// Its place on that connection, from 1.
    public let requestNumber: Int
    /// The method, as sent.
    public let method: String
    /// The request target, as sent.
    public let target: String
    /// `1.1` or `1.0`.
    public let version: String
    /// The fields, as sent.
    public let fields: OriginFields
}
