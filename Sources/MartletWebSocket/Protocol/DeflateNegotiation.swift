import MartletCore

/// The result of the negotiation of `permessage-deflate` (RFC 7692 §7.1).
package struct DeflateNegotiation: Hashable, Sendable {
    /// The base-two logarithms of the windows' sizes.
    package var clientWindowBits = 15
    package var serverWindowBits = 15
    /// Whether messages are compressed without the context of previous ones.
    package var clientNoContextTakeover = false
    package var serverNoContextTakeover = false

    /// Creates the parameters of a reply without any.
    package init() {}

    /// The value of `Sec-WebSocket-Extensions` that offers a compression.
    package static func offer(_ compression: WebSocketCompression) -> String {
        let offered = compression.bounded
        var value = "permessage-deflate; client_max_window_bits"
        if offered.clientMaximumWindowBits < 15 { value += "=\(offered.clientMaximumWindowBits)" }
        if offered.serverMaximumWindowBits < 15 {
            value += "; server_max_window_bits=\(offered.serverMaximumWindowBits)"
        }
        if offered.clientNoContextTakeover { value += "; client_no_context_takeover" }
        if offered.serverNoContextTakeover { value += "; server_no_context_takeover" }
        return value
    }

    /// Reads the server's reply to an offer.
    /// - Parameter values: The values of all `Sec-WebSocket-Extensions` fields.
    /// - Returns: The parameters; `nil` if the server declined.
    /// - Throws: An error for anything that was not offered or that RFC 7692 does not allow, which must fail the
    ///   connection (RFC 6455 §4.1).
    package static func parse(_ values: [String], offer: WebSocketCompression?) throws(WebSocketError)
        -> DeflateNegotiation?
    {
        let extensions = values.flatMap { $0.split(separator: ",", omittingEmptySubsequences: false) }
        if extensions.isEmpty { return nil }
        guard extensions.count == 1, let reply = extensions.first else {
            throw .protocolViolation("the server chose several extensions")
        }
        var parts = reply.split(separator: ";", omittingEmptySubsequences: false).map(trimmed)
        let name = parts.removeFirst()
        guard name.lowercased() == "permessage-deflate", let offer = offer?.bounded else {
            throw .protocolViolation("the server chose the extension “\(name.prefix(60))”, which was not offered")
        }
        var result = DeflateNegotiation()
        result.clientNoContextTakeover = offer.clientNoContextTakeover
        result.clientWindowBits = offer.clientMaximumWindowBits
        var seen: Set<String> = []
        for part in parts {
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(trimmed)
            let (name, value) = (pair[0].lowercased(), pair.count > 1 ? pair[1] : nil)
            let error = WebSocketError.protocolViolation("the server chose the parameter “\(part.prefix(60))”")
            guard seen.insert(name).inserted else { throw error }
            switch (name, value) {
            case ("client_no_context_takeover", nil): result.clientNoContextTakeover = true
            case ("server_no_context_takeover", nil): result.serverNoContextTakeover = true
            case ("client_max_window_bits", let value?):
                guard let bits = windowBits(value) else { throw error }
                result.clientWindowBits = min(bits, offer.clientMaximumWindowBits)
            case ("server_max_window_bits", let value?):
                guard let bits = windowBits(value), bits <= offer.serverMaximumWindowBits else { throw error }
                result.serverWindowBits = bits
            default: throw error
            }
        }
        guard offer.serverMaximumWindowBits == 15 || seen.contains("server_max_window_bits"),
            !offer.serverNoContextTakeover || result.serverNoContextTakeover
        else { throw .protocolViolation("the server ignored a parameter of permessage-deflate") }
        return result
    }

    /// A number from 8 to 15 without leading zeros, possibly as a quoted string.
    private static func windowBits(_ value: String) -> Int? {
        let isQuoted = value.count > 2 && value.hasPrefix("\"") && value.hasSuffix("\"")
        let digits = isQuoted ? String(value.dropFirst().dropLast()) : value
        return ["8", "9", "10", "11", "12", "13", "14", "15"].contains(digits) ? Int(digits) : nil
    }

    static func trimmed(_ text: Substring) -> String {
        String(decoding: ByteClass.trimmed(Array(text.utf8)[...]), as: UTF8.self)
    }

    /// The decompressor of the server's messages.
    var inflater: MessageInflater {
        MessageInflater(windowBits: serverWindowBits, keepsContext: !serverNoContextTakeover)
    }

    /// The compressor of this client's messages; `nil` if the window is smaller than zlib's smallest one. The client
    /// then sends no compressed messages, which RFC 7692 §6 allows.
    func deflater(level: Int?) -> MessageDeflater? {
        clientWindowBits < 9
            ? nil : MessageDeflater(windowBits: clientWindowBits, keepsContext: !clientNoContextTakeover, level: level)
    }
}

extension WebSocketCompression {
    /// The parameters with all numbers in their ranges.
    var bounded: WebSocketCompression {
        var bounded = self
        bounded.clientMaximumWindowBits = min(max(clientMaximumWindowBits, 9), 15)
        bounded.serverMaximumWindowBits = min(max(serverMaximumWindowBits, 9), 15)
        return bounded
    }
}
