public import HTTPTypes
public import MartletCore
import MartletWire

/// A request that a test origin, a mock transport or a script received.
///
/// ```swift
/// let request = try #require(mock.requests.first)
/// #expect(request.method == .post && request.path == "/v2/users")
/// #expect(request.headers["Accept"] == "application/json")
/// #expect(try request.decode(User.self) == anna)
/// ```
public struct RecordedRequest: OriginRequestHead, Hashable, CustomStringConvertible {
    /// The connection of the request.
    public let connection: OriginPeer
    /// The position on its connection, from 1.
    public let number: Int
    /// The method of the request.
    public let method: HTTPRequest.Method
    /// The request target, as sent: usually a path with its query.
    public let target: String
    /// The HTTP version: `1.1` or `1.0`.
    public let version: String
    /// The header fields, as sent.
    public let headers: OriginFields
    /// The bytes of the body that were received so far, without chunked framing. They are complete when the client has
    /// the response, unless its handler left a long or chunked body unread, or ``OriginLimits/recordedBodyLimit`` was
    /// reached. Before an ``OriginFault``, an unread long or chunked body is recorded as far as it has arrived, up to
    /// ``OriginLimits/unreadBodyLimit`` bytes.
    public internal(set) var body: [UInt8] = []
    /// The number of bytes of the body that were received so far, recorded or not.
    public internal(set) var bodyByteCount: UInt64 = 0

    init(_ head: RequestHead, number: Int, connection: OriginPeer) {
        // The parser accepts only tokens, which are methods.
        method = HTTPRequest.Method(head.method) ?? .get
        target = head.target
        version = head.version == .http11 ? "1.1" : "1.0"
        headers = OriginFields(head.fields)
        (self.number, self.connection) = (number, connection)
    }

    /// The body as text; bytes that are not UTF-8 become U+FFFD.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Decodes the body from JSON. The default decoder is a plain `JSONDecoder`; another example is
    /// `.json(keys: .snakeCase, dates: .iso8601)`.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``, or ``OriginError/bodyNotRecorded(byteCount:)``.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, decoder: BodyDecoder = .json())
        throws(OriginError) -> Value
    { try OriginError.decoding(type, wholeBody, decoder) }

    /// The parts of a multipart body, in order.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)`` if the body is not multipart or is malformed, or
    ///   ``OriginError/bodyNotRecorded(byteCount:)``.
    public var parts: [OriginPart] {
        get throws(OriginError) { try OriginPart.parts(of: wholeBody, contentType: contentType) }
    }

    private var wholeBody: [UInt8] {
        get throws(OriginError) {
            guard bodyByteCount == UInt64(body.count) else { throw .bodyNotRecorded(byteCount: bodyByteCount) }
            return body
        }
    }

    /// Method, target and number of body bytes, in one line.
    public var description: String { "\(method) \(target) (\(bodyByteCount) bytes)" }
}
