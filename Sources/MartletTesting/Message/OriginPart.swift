public import MartletCore

/// A part of a multipart body that a client sent, such as a field or a file of a form (RFC 7578).
///
/// ```swift
/// let photo = try #require(request.parts.first { $0.name == "photo" })
/// #expect(photo.filename == "sea.jpg" && photo.contentType == "image/jpeg")
/// ```
public struct OriginPart: Sendable, Hashable {
    /// The name of the form field. `%22`, `%0D` and `%0A`, which browsers and Martlet send for quotes and line breaks,
    /// are decoded. `nil` for a part without a name, which `multipart/form-data` does not allow.
    public let name: String?
    /// The name of the file, decoded like ``name``; `nil` for a part without one.
    public let filename: String?
    /// The header fields of the part, as sent.
    public let headers: OriginFields
    /// The bytes of the part's body.
    public let body: [UInt8]

    /// The value of Content-Type; `nil` without one.
    public var contentType: String? { headers["Content-Type"] }

    /// The body as text; bytes that are not UTF-8 become U+FFFD.
    public var text: String { String(decoding: body, as: UTF8.self) }

    /// Decodes the body from JSON; see ``RecordedRequest/decode(_:decoder:)``.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``.
    public func decode<Value: Decodable>(_ type: Value.Type = Value.self, decoder: BodyDecoder = .json())
        throws(OriginError) -> Value
    { try OriginError.decoding(type, body, decoder) }

    /// Parses a body of any multipart type (RFC 2046 §5.1.1), strictly: a preamble or an epilogue is an error.
    /// - Throws: ``OriginError/bodyNotDecodable(_:)``.
    static func parts(of body: [UInt8], contentType: String?) throws(OriginError) -> [OriginPart] {
        guard let type = contentType.flatMap({ MediaType($0) }), type.type == "multipart",
            let boundary = type["boundary"], HTTPBody.isBoundary(boundary)
        else { throw .malformed("no valid boundary in the Content-Type \(contentType ?? "none")") }
        let delimiter = Array("\r\n--\(boundary)".utf8)
        guard body.starts(with: delimiter.dropFirst(2)) else { throw .malformed("the first boundary is missing") }
        var rest = body.dropFirst(delimiter.count - 2)
        var parts: [OriginPart] = []
        while !rest.elementsEqual("--".utf8), !rest.elementsEqual("--\r\n".utf8) {
            let content = rest.dropFirst(2)
            guard rest.starts(with: "\r\n".utf8), let end = content.position(of: delimiter) else {
                throw .malformed("part \(parts.count + 1) has no end, or its boundary is not followed by a line break")
            }
            guard let part = OriginPart(content[..<end], isInForm: type.subtype == "form-data") else {
                throw .malformed("the head of part \(parts.count + 1) is invalid")
            }
            parts.append(part)
            rest = content[(end + delimiter.count)...]
        }
        return parts
    }

    /// Parses a part; `nil` if its head is invalid.
    private init?(_ bytes: ArraySlice<UInt8>, isInForm: Bool) {
        var headers = OriginFields()
        var rest = bytes
        while true {
            guard let end = rest.position(of: [0x0D, 0x0A]) else { return nil }
            let line = rest[..<end]
            rest = rest[(end + 2)...]
            if line.isEmpty { break }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > line.startIndex,
                line[..<colon].allSatisfy(ByteClass.isToken), line[(colon + 1)...].allSatisfy(ByteClass.isFieldValue),
                let value = String(validating: ByteClass.trimmed(line[(colon + 1)...]), as: UTF8.self)
            else { return nil }
            headers.append(String(decoding: line[..<colon], as: UTF8.self), value)
        }
        // With `part/` before it, `form-data; name="x"` has the syntax of a media type. In forms a backslash is not an
        // escape character (WHATWG HTML §4.10.21.8).
        let disposition = headers["Content-Disposition"].flatMap {
            MediaType("part/\($0.replacing("\\", with: "\\\\"))")
        }
        name = disposition?["name"].map(OriginPart.decoded)
        filename = disposition?["filename"].map(OriginPart.decoded)
        self.headers = headers
        body = Array(rest)
        if isInForm, disposition?.subtype != "form-data" || name == nil { return nil }
    }

    private static func decoded(_ text: String) -> String {
        text.replacing("%22", with: "\"").replacing("%0D", with: "\r").replacing("%0A", with: "\n")
    }
}

extension OriginError {
    fileprivate static func malformed(_ reason: String) -> OriginError {
        .bodyNotDecodable("not a valid multipart body: \(reason)")
    }
}

extension ArraySlice<UInt8> {
    /// The first position of a sequence that begins with CR; `nil` if it does not occur.
    fileprivate func position(of sequence: [UInt8]) -> Int? {
        var rest = self
        while let start = rest.firstIndex(of: 0x0D) {
            if rest[start...].starts(with: sequence) { return start }
            rest = rest[(start + 1)...]
        }
        return nil
    }
}
