import MartletCore
import FoundationEssentials

/// The response of an entry.
struct HARResponse {
    let exchange: HTTPExchange
    let options: HAROptions

    private var mask: SecretRedaction { options.mask }

    /// The response member of a call without a response.
    static let none: JSONValue = [
        "status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [],
        "content": ["size": 0, "mimeType": "x-unknown"], "redirectURL": "", "headersSize": -1, "bodySize": -1,
    ]

    /// The member `response` of the entry.
    var value: JSONValue {
        let head = exchange.rawHead
        let location = head.fields.firstValue(of: "location") ?? ""
        return [
            "status": JSONValue(head.status), "statusText": .string(head.reason), "httpVersion": "\(head.version.text)",
            "cookies": .array(head.fields.values(of: "set-cookie").compactMap(cookie)),
            "headers": .named(head.fields.map { ($0.name, shown($0.name, $0.value)) }), "content": content(head),
            "redirectURL": .string(mask.value(of: .location, location)), "headersSize": -1,
            "bodySize": JSONValue(received),
            // Without `_transferSize` browsers add the two sizes above, even the -1 of an unknown size.
            "_transferSize": JSONValue(received),
        ]
    }

    /// The size of the body as received.
    private var received: Int64 { Int64(clamping: exchange.metrics.receivedBodyByteCount) }

    private func shown(_ name: String, _ value: String) -> String {
        HTTPField.Name(name).map { mask.value(of: $0, value) } ?? value
    }

    private func content(_ head: ResponseHead) -> JSONValue {
        let type = head.fields.firstValue(of: "content-type")
        var members = JSONObject([("size", JSONValue(size(head))), ("mimeType", .string(type ?? "x-unknown"))])
        // The coding of a cached response saved no bytes on the wire, because no bytes were sent.
        if head.fields.contains("content-encoding"), exchange.source == .network {
            members["compression"] = JSONValue(Int64(exchange.body.count) - received)
        }
        if !exchange.body.isEmpty {
            let text = HARText(
                exchange.body, type: type.flatMap { MediaType($0) }, limit: options.bodyLimit.bytes,
                of: Int(clamping: size(head)))
            members["text"] = text.text.map { .string($0) }
            if text.isBase64 { members["encoding"] = "base64" }
            members["comment"] = text.comment.map { .string($0) }
        }
        return .object(members)
    }

    /// Returns the body's size. The exchange may have only the beginning of a large or streamed body.
    private func size(_ head: ResponseHead) -> Int64 {
        let kept = Int64(exchange.body.count)
        return head.fields.contains("content-encoding") ? kept : max(kept, received)
    }

    /// Returns a cookie of `Set-Cookie`, as far as it can be parsed; `nil` for a cookie without a name.
    private func cookie(_ text: String) -> JSONValue? {
        // Without an equals sign the first part is a value, which may be a secret.
        guard text.prefix(while: { $0 != ";" }).contains("=") else { return nil }
        let parts = text.split(separator: ";", omittingEmptySubsequences: false).map(HARResponse.pair)
        guard let first = parts.first, !first.name.isEmpty else { return nil }
        let isHidden = mask.fields.contains(.setCookie)
        var members = JSONObject([
            ("name", .string(first.name)), ("value", .string(isHidden ? SecretRedaction.stars : first.value)),
        ])
        var known: Set<String> = []
        for (name, value) in parts.dropFirst() where known.insert(name.lowercased()).inserted {
            switch name.lowercased() {
            case "path": members["path"] = .string(value)
            case "domain": members["domain"] = .string(value)
            case "httponly": members["httpOnly"] = true
            case "secure": members["secure"] = true
            case "expires":
                guard let seconds = HTTPDate(value)?.secondsSinceEpoch else { continue }
                let date = Date(timeIntervalSince1970: Double(seconds))
                members["expires"] = .string(date.formatted(.iso8601))
            default: break
            }
        }
        return .object(members)
    }

    private static func pair(_ text: Substring) -> (name: String, value: String) {
        let name = text.prefix { $0 != "=" }
        return (trimmed(name), trimmed(text.dropFirst(name.count + 1)))
    }

    private static func trimmed(_ text: Substring) -> String {
        String(decoding: ByteClass.trimmed(Array(text.utf8)[...]), as: UTF8.self)
    }
}
