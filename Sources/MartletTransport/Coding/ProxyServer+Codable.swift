extension ProxyServer: Codable {
    private enum CodingKeys: String, CodingKey {
        case scheme
        case host
        case port
        case tls
        case tunnelsEverything
    }

    /// Reads a proxy, without credentials.
    /// - Throws: `DecodingError`, also for a scheme, a host or a port that is none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let scheme = try container.decode(String.self, forKey: .scheme)
        guard let kind = Kind.all.first(where: { $0.scheme == scheme }) else {
            throw DecodingError.dataCorruptedError(
                forKey: .scheme, in: container, debugDescription: "“\(scheme)” is no proxy's scheme")
        }
        let host = try container.decode(String.self, forKey: .host)
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy(ProxyServer.isOfHost) else {
            throw DecodingError.dataCorruptedError(
                forKey: .host, in: container,
                debugDescription: "a host is a name in lower-case ASCII, or an address without brackets")
        }
        self.init(
            kind: kind, host: host, port: try container.number(.port, in: 1...65_535, or: 1080),
            tls: try container.value(.tls, or: TLSSettings()),
            tunnelsEverything: try container.value(.tunnelsEverything, or: false))
    }

    private static func isOfHost(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: ":"):
            true
        default: false
        }
    }

    /// Writes the proxy. Credentials and identities are left out: secrets are never encoded.
    /// - Throws: `EncodingError.invalidValue` as ``TLSSettings/encode(to:)``.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(kind.scheme, forKey: .scheme)
        try container.encode(host, forKey: .host)
        try container.encode(port, forKey: .port)
        if kind == .https { try container.encode(tls, forKey: .tls) }
        try container.encode(tunnelsEverything, forKey: .tunnelsEverything)
    }
}

extension SocketAddress: Codable {
    private enum CodingKeys: String, CodingKey {
        case host
        case port
        case path
    }

    /// Reads an address: a literal and a port, or the path of a unix domain socket.
    /// - Throws: `DecodingError`, also for a literal, a port or a path that is none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let found: SocketAddress?
        let text: String
        if let path = try container.decodeIfPresent(String.self, forKey: .path) {
            (found, text) = (SocketAddress(unixPath: path), path)
        } else {
            text = try container.decode(String.self, forKey: .host)
            found = SocketAddress(literal: text, port: try container.decode(Int.self, forKey: .port))
        }
        guard let found else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath, debugDescription: "“\(text)” is no address"))
        }
        self = found
    }

    /// Writes the address.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        if let port {
            try container.encode(host, forKey: .host)
            try container.encode(port, forKey: .port)
        } else {
            try container.encode(host, forKey: .path)
        }
    }
}
