import MartletClient
import Testing

/// A server that answers one request with bytes no honest server sends, and what must become of them.
///
/// What an attacker would like to have delivered is spelled `EVIL` throughout.
struct HostilePeer: Sendable, CustomTestStringConvertible {
    /// What a call to the peer must come to.
    enum Fate: Sendable {
        /// An error of this code; a fault on the wire names its byte offset, which is this one where it is given.
        case refused(HTTPError.Code, at: Int? = nil)
        /// An answer with this body, and whether the connection may carry another request.
        case answered(String, isKept: Bool)
    }

    /// What the peer does, as a sentence.
    let name: String
    /// What it sends.
    let bytes: [UInt8]
    /// What the client must make of that.
    let fate: Fate
    /// Whether it ends the connection behind the bytes; else it waits for the client to do so.
    let closes: Bool
    let method: HTTPRequest.Method

    init(
        _ name: String, _ bytes: [UInt8], _ fate: Fate, closes: Bool = false,
        method: HTTPRequest.Method = .get
    ) {
        self.name = name
        self.bytes = bytes
        self.fate = fate
        self.closes = closes
        self.method = method
    }

    init(
        _ name: String, _ text: String, _ fate: Fate, closes: Bool = false, method: HTTPRequest.Method = .get
    ) {
        self.init(name, Array(text.utf8), fate, closes: closes, method: method)
    }

    /// A peer whose status line is in order and whose fields are these lines; the fields begin at byte 17.
    static func fields(
        _ name: String, _ lines: String, body: String = "EVIL", _ fate: Fate, closes: Bool = false
    ) -> HostilePeer {
        HostilePeer(name, "HTTP/1.1 200 OK\r\n\(lines)\r\n\r\n\(body)", fate, closes: closes)
    }

    /// A peer whose head announces a chunked body, which begins at byte 47.
    static func chunked(_ name: String, _ body: String, _ fate: Fate, closes: Bool = false) -> HostilePeer {
        .fields(name, "Transfer-Encoding: chunked", body: body, fate, closes: closes)
    }

    var testDescription: String { name }
}
