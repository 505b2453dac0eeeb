import MartletURL
import MartletCore
import MartletHosts
import MartletWire

/// The properties of every URL that is parsed.
struct URLRules {
    private let url: HTTPURL

    init(_ url: HTTPURL) { self.url = url }

    /// Parses a URL with or without its dot segments; `nil` if it is rejected.
    ///
    /// - Throws: A finding if the error's offset is outside of the text.
    static func parsed(_ text: String, pathAsIs: Bool) throws(FuzzFinding) -> HTTPURL? {
        do throws(HTTPURL.ParseError) {
            return try HTTPURL(text, pathAsIs: pathAsIs)
        } catch {
            try check(error, in: text)
            return nil
        }
    }

    /// Checks that an error's offset is in its text and that the message repeats no control character of it.
    static func check(_ error: HTTPURL.ParseError, in text: String) throws(FuzzFinding) {
        try require((0...text.count).contains(error.offset), "\(error) in a text of \(text.count) characters")
        let isPlain = error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0x7F }
        try require(isPlain, "the error repeats a control character: \(error)")
    }

    /// Checks the URL.
    ///
    /// - Parameter pathAsIs: Whether dot segments were retained during parsing.
    func check(pathAsIs: Bool) throws(FuzzFinding) {
        let text = url.absoluteString
        try require(text.utf8.count <= HTTPURL.lengthLimit, "the address has \(text.utf8.count) bytes")
        try require(text.utf8.allSatisfy(ByteClass.isTarget), "the address is not visible ASCII: \(text)")
        try require(try URLRules.parsed(text, pathAsIs: pathAsIs) == url, "\(text) parses to another address")
        try require((1...65_535).contains(url.port), "the port is \(url.port)")
        try require(url.explicitPort != url.scheme.defaultPort, "the default port is explicit")
        try require(url.path.utf8.first == UInt8(ascii: "/"), "the path is \(url.path)")
        try checkHost()
        try checkTarget()
        try checkUserInfo()
    }

    private func checkHost() throws(FuzzFinding) {
        let host = url.host
        try require(!host.isEmpty && host == host.lowercased(), "the host is \(host)")
        let isHost = host.utf8.allSatisfy { ByteClass.isTarget($0) && !"#%/<>?@[\\]^|".utf8.contains($0) }
        try require(
            isHost && host.utf8.contains(UInt8(ascii: ":")) == url.isIPv6Literal, "the host is \(host)")
        let bracketed = url.isIPv6Literal ? "[\(host)]" : host
        let bare = try URLRules.parsed("http://\(bracketed)", pathAsIs: false)
        try require(bare?.host == host, "the host \(host) alone is \(String(describing: bare?.host))")
        let port = SocketAddress(literal: host, port: url.port)
        try require((port != nil) == url.isIPLiteral, "\(host) is an address to one and a name to another")
    }

    /// Checks that the request line and the Host field form one request.
    private func checkTarget() throws(FuzzFinding) {
        // A name can contain a comma (RFC 3986 §3.2.2), but is not sent: a Host field with several values is a known
        // attack.
        if url.host.utf8.contains(UInt8(ascii: ",")) { return }
        for target in [url.requestTarget, url.absoluteForm] {
            var encoder = RequestEncoder()
            do throws(WireError) {
                try encoder.begin(method: "GET", target: target)
                try encoder.hostField(url.hostFieldValue)
                encoder.end()
            } catch {
                throw FuzzFinding("\(target) at \(url.hostFieldValue) cannot be written: \(error)")
            }
            let reading = RequestReading(encoder.bytes, .whole(encoder.bytes.count), .default)
            try require(reading.requests.count == 1, "\(target) became \(reading.requests.count) requests")
        }
        let again = try URLRules.parsed(url.absoluteForm, pathAsIs: true)
        try require(again?.origin == url.origin, "\(url.absoluteForm) has another origin")
    }

    private func checkUserInfo() throws(FuzzFinding) {
        let plain = url.withoutUserInfo
        try require(plain.user == nil && plain.password == nil, "\(plain) has user info")
        try require(plain.origin == url.origin, "user info is part of the origin")
        try require(
            url.password == nil || url.redacted.contains(":***@"), "a password is shown: \(url.redacted)")
    }
}
