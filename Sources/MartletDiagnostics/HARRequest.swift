package import MartletCore
import FoundationEssentials

/// The request of an entry.
struct HARRequest {
    let request: HTTPRequest
    let url: HTTPURL
    let body: HTTPBody
    /// The fields as they were sent, or those of the request without `Host` and the type of its body.
    let sentFields: HTTPFields
    /// Whether the fields are complete.
    var isComplete = false
    let options: HAROptions

    private var mask: SecretRedaction { options.mask }
    private var limit: Int { options.bodyLimit.bytes }

    private var fields: HTTPFields {
        if isComplete { return sentFields }
        var fields = sentFields
        if fields[.hostField] == nil { fields[.hostField] = request.headerFields[.hostField] ?? url.hostFieldValue }
        if let type = body.contentType, fields[.contentType] == nil { fields[.contentType] = type }
        if let compression = body.compression {
            fields[.contentEncoding] = compression.fieldValue(
                after: fields[values: .contentEncoding], isApplied: body.length != 0)
        }
        return fields
    }

    /// The member `request` of the entry.
    var value: JSONValue {
        var members = JSONObject([
            ("method", .string(request.method.rawValue)), ("url", .string(mask.text(of: url))),
            ("httpVersion", "HTTP/1.1"), ("cookies", cookies),
            ("headers", .named(fields.map { ($0.name.rawName, mask.value(of: $0.name, $0.value)) })),
            ("queryString", query(url.query ?? "")), ("headersSize", -1),
            ("bodySize", JSONValue(body.isPresent ? sentLength.map { Int64(clamping: $0) } ?? -1 : 0)),
        ])
        if body.isPresent { members["postData"] = postData }
        return .object(members)
    }

    /// The number of bytes that were sent, which is not known for a compressed body.
    private var sentLength: UInt64? { body.compression == nil || body.length == 0 ? body.length : nil }

    private var cookies: JSONValue {
        let isHidden = mask.fields.contains(.cookie)
        let pairs: [Substring] = fields[values: .cookie].flatMap { $0.split(separator: ";") }
        return .named(
            pairs.compactMap { pair in
                let trimmed = pair.drop { $0 == " " }
                // Without an equals sign, all of it is a value (RFC 6265bis §5.6). A log has no cookies without a name.
                guard let equals = trimmed.firstIndex(of: "="), equals > trimmed.startIndex else { return nil }
                let value = isHidden ? SecretRedaction.stars : String(trimmed[equals...].dropFirst())
                return (String(trimmed[..<equals]), value)
            })
    }

    private func query(_ text: String) -> JSONValue {
        .named(
            FormEncoding.decoded(text).map { item in
                (item.name, mask.hides(item.name) ? SecretRedaction.stars : item.value ?? "")
            })
    }

    private var postData: JSONValue {
        let type = fields[.contentType] ?? body.contentType ?? "application/octet-stream"
        var members = JSONObject([("mimeType", .string(type))])
        switch body.encoded(by: BodyEncoder()).storage {
        case .bytes(let bytes):
            if MediaType(type)?.essence == "application/x-www-form-urlencoded" {
                // The limit may cut a value. The name before the value decides whether it is secret.
                let form = String(decoding: bytes.prefix(limit), as: UTF8.self)
                // HAR 1.2 allows either text or parameters. Browsers write both, and some show nothing without text.
                members["params"] = query(form)
                members["text"] = .string(mask.query(form))
                if bytes.count > limit { members["comment"] = "the first \(limit) of \(bytes.count) bytes" }
            } else {
                let text = HARText(bytes, type: MediaType(type), limit: limit)
                members["text"] = .string(text.text ?? "")
                // HAR 1.2 defines no Base64 here, so a custom member is used.
                if text.isBase64 { members["_encoding"] = "base64" }
                members["comment"] = text.comment.map { .string($0) }
            }
        case .multipart(let content):
            members["params"] = .array(content.parts.map(parameter))
            members["text"] = .string(text(of: content, type))
        case .file(let path):
            members["text"] = ""
            members["comment"] = "the file \(path.string)"
        case .none, .stream, .once, .value, .failure:
            members["text"] = ""
            members["comment"] = "a stream"
        }
        return .object(members)
    }

    private func parameter(_ part: MultipartForm.Part) -> JSONValue {
        var members = JSONObject([("name", .string(part.name))])
        members["value"] = shownValue(of: part).map { .string($0) }
        members["fileName"] = part.filename.map { .string($0) }
        members["contentType"] = part.body.contentType.map { .string($0) }
        return .object(members)
    }

    /// Returns the text of a part, or stars for a secret; `nil` for files, streams, large parts and other bytes.
    private func shownValue(of part: MultipartForm.Part) -> String? {
        if mask.hides(part.name) { return SecretRedaction.stars }
        guard part.filename == nil, case .bytes(let bytes) = part.body.storage, bytes.count <= limit else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// Returns a form as text that browsers can split into parts: the body without hidden values and without the parts'
    /// own fields. Empty if the type has no boundary.
    private func text(of content: MultipartContent, _ type: String) -> String {
        guard let boundary = MediaType(type)?["boundary"] else { return "" }
        var text = ""
        for part in content.parts {
            var head = PartHead(quoting: .percent)
            do throws(MultipartError) {
                try head.disposition(name: part.name, filename: part.filename)
                if let type = part.body.contentType { try head.field("Content-Type", type) }
            } catch {
                // The request would have failed with such a part.
                continue
            }
            text += "--\(boundary)\r\n\(String(decoding: head.bytes, as: UTF8.self))\r\n"
            text += "\(shownValue(of: part) ?? "")\r\n"
        }
        return text + "--\(boundary)--\r\n"
    }
}

/// A body in a HAR log: its text, or Base64 for other bytes, up to a limit.
package struct HARText {
    /// The text, or the bytes in Base64; `nil` for bytes above the limit.
    package let text: String?
    /// Whether ``text`` is Base64.
    package let isBase64: Bool
    /// A note on omitted bytes; `nil` if no bytes are omitted.
    package let comment: String?

    /// Selects the shown part of a body.
    /// - Parameter total: The size of the whole body, if `bytes` is only its beginning.
    package init(_ bytes: [UInt8], type: MediaType?, limit: Int, of total: Int? = nil) {
        let shown = bytes.prefix(limit)
        let total = max(bytes.count, total ?? 0)
        let isWhole = shown.count == total
        let decoded = HARText.decoded(shown, isWhole: isWhole, type)
        isBase64 = decoded == nil && isWhole
        text = isBase64 ? Data(bytes).base64EncodedString() : decoded
        comment =
            if isWhole { nil } else if decoded == nil { "\(total) bytes, above the limit for shown bodies" } else {
                "the first \(shown.count) of \(total) bytes"
            }
    }

    private static func decoded(_ bytes: ArraySlice<UInt8>, isWhole: Bool, _ type: MediaType?) -> String? {
        if let charset = type?.charset, let encoding = TextDecoding.Encoding(label: charset), encoding != .utf8 {
            return TextDecoding(charset: charset).text(from: bytes)
        }
        guard !bytes.contains(0) else { return nil }
        // A text that is cut within a character still counts as text.
        for dropped in 0...(isWhole ? 0 : min(3, bytes.count)) {
            if let text = String(validating: bytes.dropLast(dropped), as: UTF8.self) { return text }
        }
        return nil
    }
}
