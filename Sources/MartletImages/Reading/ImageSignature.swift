/// How files of each format begin.
enum ImageSignature {
    private static let all: [(ImageFormat, [UInt8?])] = [
        (.png, [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]),
        (.jpeg, [0xFF, 0xD8, 0xFF]),
        (.gif, [0x47, 0x49, 0x46, 0x38, 0x37, 0x61]),
        (.gif, [0x47, 0x49, 0x46, 0x38, 0x39, 0x61]),
        (.webp, Array("RIFF".utf8) + [nil, nil, nil, nil] + Array("WEBP".utf8)),
    ]

    /// The format of a file; nil as long as there may be several.
    static func format(of bytes: ImageBytes) throws(ImageError) -> ImageFormat? {
        var isPossible = false
        for (format, signature) in all {
            let count = min(signature.count, bytes.count)
            let matches = (0..<count).allSatisfy { signature[$0] == nil || signature[$0] == bytes.byte($0) }
            guard matches else { continue }
            if count == signature.count { return format }
            isPossible = true
        }
        guard isPossible else {
            throw ImageError(.unknownFormat, at: 0, "the first bytes are those of no format that is known")
        }
        return nil
    }

    /// A reader at the beginning of a file of a format.
    static func reader(of format: ImageFormat) -> any ImageFileReader {
        switch format {
        case .png: PNGReader()
        case .jpeg: JPEGReader()
        case .gif: GIFReader()
        case .webp: WebPReader()
        }
    }
}
