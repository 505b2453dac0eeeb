/// The request of an entry.
struct HARRequest {
    private let request: HTTPRequest
    private let url: HTTPURL
    private let body: HTTPBody
    private let fields: HTTPFields
    private let mask: SecretMask
    private let limit: Int

    init(
        _ request: HTTPRequest, url: HTTPURL, body: HTTPBody, sentHeaders: HTTPFields?, options: HAROptions
    ) {
        self.request = request
        self.url = url
        self.body = body
        mask = options.mask
        limit = options.bodyLimit.bytes
        var fields = sentHeaders ?? request.headerFields
        if sentHeaders == nil {
            if fields[.hostField] == nil { fields[.hostField] = url.hostFieldValue }
            if let type = body.contentType, fields[.contentType] == nil { fields[.contentType] = type }
        }
        self.fields = fields
    }

    /// The member `request`.
    var value: HARValue {
        var members: [(name: String, value: HARValue)] = [
            ("method", .text(request.method.rawValue)), ("url", .text(mask.text(of: url))),
            ("httpVersion", .text("HTTP/1.1")), ("cookies", cookies),
            ("headers", HARFields.value(fields.map { ($0.name.rawName, mask.value(of: $0.name, $0.value)) })),
            ("queryString", query(url.query ?? "")), ("headersSize", .number(-1)),
            ("bodySize", .number(body.isPresent ? body.length.map { Int64(clamping: $0) } ?? -1 : 0)),
        ]
        if body.isPresent { members.append(("postData", postData)) }
        return .members(members)
    }

    private var cookies: HARValue {
        let isHidden = mask.fields.contains(.cookie)
        let pairs: [Substring] = fields[values: .cookie].flatMap { $0.split(separator: ";") }
        return .list(
            pairs.compactMap { pair in
                let trimmed = pair.drop { $0 == " " }
                let equals = trimmed.firstIndex(of: "=") ?? trimmed.endIndex
                guard equals > trimmed.startIndex else { return nil }
                let value = isHidden ? SecretMask.stars : String(trimmed[equals...].dropFirst())
                return .members([("name", .text(String(trimmed[..<equals]))), ("value", .text(value))])
            })
    }

    private func query(_ text: String) -> HARValue {
        .list(
            FormEncoding.decoded(text).map { item in
                let value = mask.hides(item.name) ? SecretMask.stars : item.value ?? ""
                return .members([("name", .text(item.name)), ("value", .text(value))])
            })
    }

    private var postData: HARValue {
        let type = fields[.contentType] ?? body.contentType ?? "application/octet-stream"
        var members: [(name: String, value: HARValue)] = [("mimeType", .text(type))]
        switch body.storage {
        case .bytes(let bytes):
            if MediaType(type)?.essence == "application/x-www-form-urlencoded", bytes.count <= limit {
                // Text and parameters exclude each other.
                members.append(("params", query(String(decoding: bytes, as: UTF8.self))))
            } else {
                members += HARText(bytes, type: MediaType(type), limit: limit).postMembers
            }
        case .multipart(let content): members.append(("params", .list(content.parts.map(parameter))))
        case .file(let path):
            members += [("text", .text("")), ("comment", .text("the file \(path.string)"))]
        case .none, .stream, .once, .failure:
            members += [("text", .text("")), ("comment", .text("a stream"))]
        }
        return .members(members)
    }

    private func parameter(_ part: MultipartForm.Part) -> HARValue {
        var members: [(name: String, value: HARValue)] = [("name", .text(part.name))]
        if mask.hides(part.name) {
            members.append(("value", .text(SecretMask.stars)))
        } else if part.filename == nil, case .bytes(let bytes) = part.body.storage, bytes.count <= limit,
            let text = String(validating: bytes, as: UTF8.self)
        {
            members.append(("value", .text(text)))
        }
        if let filename = part.filename { members.append(("fileName", .text(filename))) }
        if let type = part.body.contentType { members.append(("contentType", .text(type))) }
        return .members(members)
    }
}
