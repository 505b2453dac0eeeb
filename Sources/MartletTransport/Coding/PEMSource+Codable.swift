extension PEMSource: Codable {
    private enum CodingKeys: String, CodingKey {
        case file
        case text
        case bytes
    }

    /// Reads a source: the path of a file, a text, or bytes.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        if let path = try container.decodeIfPresent(String.self, forKey: .file) {
            self = .file(path)
        } else if let text = try container.decodeIfPresent(String.self, forKey: .text) {
            self = .text(text)
        } else {
            self = .bytes(try container.decode([UInt8].self, forKey: .bytes))
        }
    }

    /// Writes the source: certificates and lists in memory as they are, files by their path.
    /// - Throws: `EncodingError.invalidValue` for a text that holds a private key: keys are never encoded.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        switch place {
        case .file(let path): try container.encode(path, forKey: .file)
        case .bytes(let bytes):
            let text = String(decoding: bytes, as: UTF8.self)
            guard !text.contains("PRIVATE KEY") else {
                throw EncodingError.invalidValue(
                    self,
                    EncodingError.Context(
                        codingPath: encoder.codingPath, debugDescription: "private keys are never encoded"))
            }
            if text.utf8.elementsEqual(bytes) {
                try container.encode(text, forKey: .text)
            } else {
                try container.encode(bytes, forKey: .bytes)
            }
        }
    }
}
