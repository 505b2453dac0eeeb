import HTTPTypes

extension HTTPFields {
    /// Fields that belong to one connection and are not forwarded (RFC 9110 §7.6.1).
    private static let hopByHopNames: Set<String> = [
        "connection", "keep-alive", "proxy-authenticate", "proxy-authentication-info", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    /// The fields without those that belong to one connection: the known ones, and those that `Connection` names.
    var withoutHopByHopFields: HTTPFields {
        let listed = self[values: .connection].flatMap { $0.split(separator: ",") }
            .map { $0.trimmingPrefix(while: \.isWhitespace).prefix { !$0.isWhitespace }.lowercased() }
        return filter { field in
            !Self.hopByHopNames.contains(field.name.canonicalName)
                && !listed.contains(field.name.canonicalName)
        }
    }

    /// Returns the fields of a request for the upstream server.
    /// - Parameters:
    ///   - client: The address of the client; it is appended to the addresses that the request already has.
    ///   - host: The host that the client requested.
    func forwarded(from client: String?, host: String?) -> HTTPFields {
        var fields = withoutHopByHopFields
        // The proxy cannot pass on the interim response that the client waits for; it waits for a second at most.
        fields[.expect] = nil
        fields.append(HTTPField(name: .via, value: "1.1 reverse-proxy"))
        if let client { fields.append(HTTPField(name: .xForwardedFor, value: client)) }
        if let host { fields[.xForwardedHost] = host }
        fields[.xForwardedProto] = "http"
        return fields
    }
}

// These names are valid.
// swift-format-ignore: NeverForceUnwrap
extension HTTPField.Name {
    static let xForwardedFor = Self("X-Forwarded-For")!
    static let xForwardedHost = Self("X-Forwarded-Host")!
    static let xForwardedProto = Self("X-Forwarded-Proto")!
}
