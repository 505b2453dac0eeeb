public import HTTPTypes

/// The header fields of a request or response, in order, with repetitions, exactly as they are sent (RFC 9110 §5).
///
/// A dictionary literal may repeat a name: `["Set-Cookie": "a=1", "Set-Cookie": "b=2"]`.
public struct OriginFields: Sendable, Hashable, RandomAccessCollection, ExpressibleByDictionaryLiteral,
    CustomStringConvertible
{
    /// A name and a value.
    public typealias Element = (name: String, value: String)

    private struct Line: Hashable {
        var name: String
        var value: String

        func isNamed(_ other: String) -> Bool {
            name.utf8.count == other.utf8.count && name.lowercased() == other.lowercased()
        }
    }

    private var lines: [Line] = []

    /// Creates an empty collection.
    public init() {}

    /// Creates fields in the order of the literal.
    public init(dictionaryLiteral elements: (String, String)...) {
        lines = elements.map { Line(name: $0.0, value: $0.1) }
    }

    /// Creates fields in the order of a sequence.
    public init(_ pairs: some Sequence<(name: String, value: String)>) {
        lines = pairs.map { Line(name: $0.name, value: $0.value) }
    }

    /// The first position; always 0.
    public var startIndex: Int { 0 }

    /// The number of field lines.
    public var endIndex: Int { lines.count }

    /// The field at a position.
    public subscript(position: Int) -> Element { (lines[position].name, lines[position].value) }

    /// The first value of a name, ignoring case. Setting it replaces all lines of the name by one; `nil` removes them.
    public subscript(name: String) -> String? {
        get { lines.first { $0.isNamed(name) }?.value }
        set {
            let index = lines.firstIndex { $0.isNamed(name) }
            lines.removeAll { $0.isNamed(name) }
            if let newValue { lines.insert(Line(name: name, value: newValue), at: index ?? lines.count) }
        }
    }

    /// The first value of a name such as `.contentType`; see the subscript by a string.
    public subscript(name: HTTPField.Name) -> String? {
        get { self[name.rawName] }
        set { self[name.rawName] = newValue }
    }

    /// All values of a name, ignoring case, one for each field line.
    public func values(of name: String) -> [String] { lines.filter { $0.isNamed(name) }.map(\.value) }

    /// Whether there is a field with the name, ignoring case.
    public func contains(_ name: String) -> Bool { lines.contains { $0.isNamed(name) } }

    /// Adds a field at the end, even if the name exists.
    public mutating func append(_ name: String, _ value: String) { lines.append(Line(name: name, value: value)) }

    /// The fields as a Swift literal: `["Content-Type": "text/plain"]`.
    public var description: String {
        lines.isEmpty ? "[:]" : "[" + lines.map { "\"\($0.name)\": \"\($0.value)\"" }.joined(separator: ", ") + "]"
    }

    /// A copy of the fields, with a Content-Type added if they have none; `nil` adds nothing.
    func with(contentType: String?) -> OriginFields {
        var copy = self
        if let contentType, !contains("Content-Type") {
            copy.lines.insert(Line(name: "Content-Type", value: contentType), at: 0)
        }
        return copy
    }
}

/// The usual reason phrases (RFC 9110 §15).
enum StatusPhrase {
    private static let phrases: [Int: String] = [
        100: "Continue", 101: "Switching Protocols", 102: "Processing", 103: "Early Hints", 200: "OK", 201: "Created",
        202: "Accepted", 203: "Non-Authoritative Information", 204: "No Content", 205: "Reset Content",
        206: "Partial Content", 300: "Multiple Choices", 301: "Moved Permanently", 302: "Found", 303: "See Other",
        304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request",
        401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 406: "Not Acceptable",
        407: "Proxy Authentication Required", 408: "Request Timeout", 409: "Conflict", 410: "Gone",
        411: "Length Required", 412: "Precondition Failed", 413: "Content Too Large", 414: "URI Too Long",
        415: "Unsupported Media Type", 416: "Range Not Satisfiable", 417: "Expectation Failed",
        421: "Misdirected Request", 422: "Unprocessable Content", 425: "Too Early", 426: "Upgrade Required",
        428: "Precondition Required", 429: "Too Many Requests", 431: "Request Header Fields Too Large",
        451: "Unavailable For Legal Reasons", 500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway",
        503: "Service Unavailable", 504: "Gateway Timeout", 505: "HTTP Version Not Supported",
    ]

    static func of(_ status: Int) -> String { phrases[status] ?? "" }
}
