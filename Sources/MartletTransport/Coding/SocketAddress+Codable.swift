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
