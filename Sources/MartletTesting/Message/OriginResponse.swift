import FoundationEssentials

/// What a handler of the test origin answers.
public struct OriginResponse: Sendable {
    /// 200...999; interim ones go into ``interim``.
    public var status: Int
    /// The reason phrase; `nil` for the usual one of the status.
    public var reason: String?
    /// The fields, sent in this order and with repetitions. A Content-Length or Transfer-Encoding among them
    /// replaces the framing that the origin would add, and the body is then sent as it is.
    public var fields: OriginFields
    /// The body. It is left out where the method or the status allows none (RFC 9112 §6.3).
    public var body: OriginResponseBody
    /// How the body's length is told.
    public var framing = OriginFraming.automatic
    /// Fields behind the body; they are sent with chunked framing only.
    public var trailers = OriginFields()
    /// Responses sent before this one.
    public var interim: [InterimResponse] = []
    /// Whether the connection is closed behind it. `false`: as the client wishes.
    public var closesConnection = false
    /// Whether the status line says HTTP/1.0.
    public var claimsHTTP10 = false
    /// A pause before the head; a client that leaves ends it.
    public var delay = Duration.zero
    /// How fast the body is sent; `nil`: as fast as the client takes it.
    public var pacing: OriginPacing?
    /// What goes wrong on purpose.
    public var fault: OriginFault?

    /// A response.
    public init(_ status: Int = 200, fields: OriginFields = [:], body: OriginResponseBody = .empty) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    /// Text, as `text/plain` in UTF-8.
    public static func text(_ text: String, status: Int = 200) -> OriginResponse {
        OriginResponse(status, fields: ["Content-Type": "text/plain; charset=utf-8"], body: .text(text))
    }

    /// Text that is JSON already.
    public static func json(text: String, status: Int = 200) -> OriginResponse {
        OriginResponse(status, fields: ["Content-Type": "application/json"], body: .text(text))
    }

    /// A value encoded as JSON, with its keys in order.
    /// - Throws: What the encoder throws.
    public static func json(_ value: some Encodable, status: Int = 200) throws -> OriginResponse {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        let bytes = try encoder.encode(value)
        return OriginResponse(
            status, fields: ["Content-Type": "application/json"], body: .bytes([UInt8](bytes)))
    }

    /// Bytes of a type.
    public static func bytes(
        _ bytes: [UInt8], type: String = "application/octet-stream"
    ) -> OriginResponse {
        OriginResponse(200, fields: ["Content-Type": type], body: .bytes(bytes))
    }

    /// So many bytes of ``TestPattern``.
    public static func pattern(_ count: UInt64) -> OriginResponse {
        OriginResponse(200, fields: ["Content-Type": "application/octet-stream"], body: .pattern(count))
    }

    /// Bytes that are compressed already, with the name of their coding: the origin itself compresses
    /// nothing.
    public static func encoded(
        _ bytes: [UInt8], coding: String, type: String = "text/plain; charset=utf-8"
    ) -> OriginResponse {
        OriginResponse(
            200, fields: ["Content-Type": type, "Content-Encoding": coding, "Vary": "Accept-Encoding"],
            body: .bytes(bytes))
    }

    /// A redirect.
    public static func redirect(to location: String, status: Int = 302) -> OriginResponse {
        OriginResponse(status, fields: ["Location": location])
    }

    /// This response, after a change: `.text("late").with { $0.delay = .seconds(1) }`.
    public func with(_ change: (inout OriginResponse) -> Void) -> OriginResponse {
        var copy = self
        change(&copy)
        return copy
    }
}
