package import HTTPTypes
package import MartletWire

/// The conversion of parsed heads to the types of HTTPTypes, which the public API uses.
package enum HeadConversion {
    /// Returns a response. The parser has checked all conditions that would trap in HTTPTypes: the status has three
    /// digits and is at least 100, names are tokens, and the number of fields is limited.
    package static func response(_ head: ResponseHead) -> HTTPResponse {
        HTTPResponse(
            status: HTTPResponse.Status(code: head.status, reasonPhrase: head.reason), headerFields: fields(head.fields)
        )
    }

    /// The names of common response fields, in their usual case and in lower case. A lookup is faster than parsing.
    private static let commonNames: [String: HTTPField.Name] = {
        let names = [
            "Accept-Ranges", "Access-Control-Allow-Origin", "Age", "Allow", "Alt-Svc", "Cache-Control", "Connection",
            "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Length", "Content-Location",
            "Content-Range", "Content-Security-Policy", "Content-Type", "Date", "ETag", "Expires", "Keep-Alive",
            "Last-Modified", "Link", "Location", "Pragma", "Referrer-Policy", "Retry-After", "Server", "Set-Cookie",
            "Strict-Transport-Security", "Transfer-Encoding", "Vary", "Via", "WWW-Authenticate", "X-Cache",
            "X-Content-Type-Options", "X-Frame-Options", "X-Powered-By", "X-Request-Id",
        ]
        var table: [String: HTTPField.Name] = [:]
        for name in names + names.map({ $0.lowercased() }) { table[name] = HTTPField.Name(name) }
        return table
    }()

    /// Returns the fields of a block, in order. Names that are not tokens, which no parser accepts, are omitted.
    package static func fields(_ block: FieldBlock) -> HTTPFields {
        var fields = HTTPFields()
        fields.reserveCapacity(block.count)
        for index in block.indices {
            let text = block.nameString(at: index)
            guard let name = commonNames[text] ?? HTTPField.Name(text) else { continue }
            fields.append(HTTPField(name: name, value: block.valueString(at: index)))
        }
        return fields
    }
}
