/// The chunks of a PNG (W3C Portable Network Graphics, third edition, §5 and §11).
struct PNGReader: ImageFileReader {
    private enum State: Equatable {
        case signature
        /// A chunk's length and type come next; the first must be IHDR.
        case chunk(isFirst: Bool)
        case done
    }

    private var state = State.signature
    private var hasData = false

    var isDone: Bool { state == .done }

    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool {
        switch state {
        case .done: return false
        case .signature:
            guard bytes.take(8) != nil else { return false }
            state = .chunk(isFirst: true)
            return true
        case .chunk(let isFirst): return try takeChunk(isFirst, &bytes, &facts)
        }
    }

    private mutating func takeChunk(
        _ isFirst: Bool, _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        guard let head = bytes.peek(8) else { return false }
        let place = bytes.offset
        let length = head.big(0, 4)
        let type = Array(head.dropFirst(4))
        guard length <= Int(Int32.max) else {
            throw ImageError(.malformed, at: place, "a chunk of \(length) bytes")
        }
        guard type.allSatisfy({ (0x41...0x5A).contains($0 & 0xDF) && $0 < 0x80 }) else {
            throw ImageError(.malformed, at: place + 4, "a chunk's type is no four letters")
        }
        let name = String(decoding: type, as: UTF8.self)
        guard !isFirst || name == "IHDR" && length == 13 else {
            throw ImageError(.malformed, at: place, "the first chunk is no IHDR of 13 bytes")
        }
        switch name {
        case "IHDR", "acTL", "eXIf":
            guard length <= PNGReader.chunkByteLimit else { break }
            guard let chunk = bytes.peek(length + 12) else { return false }
            let covered = chunk.dropFirst(4).dropLast(4)
            guard PNGReader.checksum(covered) == UInt32(chunk.big(length + 8, 4)) else {
                throw ImageError(.malformed, at: place, "the checksum of \(name) is wrong")
            }
            try take(name, covered.dropFirst(4), isFirst, at: place + 8, &facts)
        case "IDAT":
            if facts.isAnimated == nil {
                facts.isAnimated = false
                facts.frameCount = 1
            }
            hasData = true
            facts.hasHead = true
        case "IEND":
            guard hasData else { throw ImageError(.malformed, at: place, "there is no IDAT") }
            state = .done
            return false
        default: break
        }
        state = .chunk(isFirst: false)
        bytes.skip(length + 12)
        return true
    }

    private func take(
        _ name: String, _ data: ArraySlice<UInt8>, _ isFirst: Bool, at place: Int, _ facts: inout ImageFacts
    ) throws(ImageError) {
        switch name {
        case "IHDR":
            guard isFirst else { throw ImageError(.malformed, at: place - 8, "a second IHDR") }
            facts.size = try PNGReader.size(data, at: place)
        case "acTL":
            guard data.count == 8 else {
                throw ImageError(.malformed, at: place, "an acTL of \(data.count) bytes")
            }
            // Behind the pixels it says nothing (§11.3.6.1).
            guard !hasData, facts.isAnimated == nil else { return }
            let count = data.big(0, 4)
            guard count > 0, count <= Int(Int32.max) else {
                throw ImageError(.malformed, at: place, "an animation of \(count) frames")
            }
            facts.frameCount = count
            facts.isAnimated = count > 1
        default: if facts.orientation == nil { facts.orientation = ExifOrientation.orientation(in: data) }
        }
    }

    private static func size(_ data: ArraySlice<UInt8>, at place: Int) throws(ImageError) -> ImageSize {
        let size = ImageSize(width: data.big(0, 4), height: data.big(4, 4))
        guard (1...Int(Int32.max)).contains(size.width), (1...Int(Int32.max)).contains(size.height) else {
            throw ImageError(.malformed, at: place, "an image of \(size) pixels")
        }
        let depth = data.big(8, 1)
        let depths: [Int] =
            switch data.big(9, 1) {
            case 0: [1, 2, 4, 8, 16]
            case 3: [1, 2, 4, 8]
            case 2, 4, 6: [8, 16]
            default: []
            }
        guard depths.contains(depth) else {
            throw ImageError(.malformed, at: place + 8, "\(depth) bits of the colour type \(data.big(9, 1))")
        }
        guard data.big(10, 2) == 0, data.big(12, 1) <= 1 else {
            throw ImageError(.malformed, at: place + 10, "an unknown compression, filter or interlacing")
        }
        return size
    }

    /// CRC-32 of ISO 3309, as chunks have it (§5.5).
    static func checksum(_ bytes: some Sequence<UInt8>) -> UInt32 {
        var value: UInt32 = 0xFFFF_FFFF
        for byte in bytes {
            value ^= UInt32(byte)
            for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : value >> 1 ^ 0xEDB8_8320 }
        }
        return ~value
    }
}
