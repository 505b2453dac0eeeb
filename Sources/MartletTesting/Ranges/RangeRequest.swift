/// A request to a range origin, and what became of it.
package struct RangeRequest: Sendable {
    /// Its number among all requests of the conduct, from 1.
    package var number: Int
    /// The number of the connection it came on, from 1.
    package var connection: Int
    /// The method, as sent.
    package var method: String
    /// The request target, as sent.
    package var target: String
    /// The fields, as sent.
    package var fields: OriginFields
    /// The value of Range; `nil` without one.
    package var range: String?
    /// The first byte asked for: 0 where there is no Range, `nil` where it cannot be read or counts from the end.
    package var start: UInt64?
    /// The last byte asked for; `nil` where it is open.
    package var end: UInt64?
    /// The value of If-Range; `nil` without one.
    package var ifRange: String?
    /// The status of the answer.
    package var status = 0
    /// The Content-Range of the answer, joined where there were several; `nil` for none.
    package var contentRange: String?
    /// Which version the answer was of, from 0; `nil` where it was of none.
    package var version: Int?
    /// How many bytes of the body were handed to the system.
    package var sentByteCount: UInt64 = 0

    /// Whether it asks for bytes behind the first.
    package var isResumption: Bool { range != nil && start != 0 }

    init(_ request: OriginRequest, number: Int) {
        self.number = number
        connection = request.connection.number
        method = request.method
        target = request.target
        fields = request.fields
        range = request.fields["Range"]
        ifRange = request.fields["If-Range"]
        (start, end) = RangeRequest.bounds(of: range)
    }

    /// The bounds of a single range of bytes.
    private static func bounds(of field: String?) -> (start: UInt64?, end: UInt64?) {
        guard let field else { return (0, nil) }
        guard field.hasPrefix("bytes=") else { return (nil, nil) }
        let parts = field.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2 else { return (nil, nil) }
        return (UInt64(parts[0]), UInt64(parts[1]))
    }
}
