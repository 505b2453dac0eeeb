/// The chunks of a WebP (RFC 9649).
struct WebPReader: ImageFileReader {
    private enum State: Equatable {
        case header
        /// A chunk comes next; the first has the size.
        case chunk(isFirst: Bool)
        case done
    }

    private var state = State.header
    /// Where the file ends, as it says.
    private var end = 0
    private var frameCount = 0
    private var isAnimated = false

    var isDone: Bool { state == .done }

    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool {
        switch state {
        case .done: return false
        case .header:
            guard let header = bytes.peek(12) else { return false }
            end = header.little(4, 4) + 8
            guard end >= 20 else {
                throw ImageError(.malformed, at: bytes.offset + 4, "a file of \(end) bytes")
            }
            bytes.skip(12)
            state = .chunk(isFirst: true)
            return true
        case .chunk(let isFirst): return try isFirst ? takeFirst(&bytes, &facts) : takeChunk(&bytes, &facts)
        }
    }

    private mutating func takeFirst(
        _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        guard let head = bytes.peek(8) else { return false }
        let length = head.little(4, 4)
        let place = bytes.offset
        guard length <= end - place - 8 else {
            throw ImageError(.malformed, at: place + 4, "a chunk of \(length) bytes in a file of \(end)")
        }
        let type = String(decoding: head.prefix(4), as: UTF8.self)
        let needed: Int
        switch type {
        case "VP8 ", "VP8X": needed = 10
        case "VP8L": needed = 5
        default: throw ImageError(.malformed, at: place, "the first chunk is none of VP8, VP8L and VP8X")
        }
        guard length >= needed else {
            throw ImageError(.malformed, at: place + 4, "a chunk \(type) of \(length) bytes")
        }
        guard let data = bytes.peek(8 + needed)?.dropFirst(8) else { return false }
        switch type {
        case "VP8 ": facts.size = try WebPReader.lossySize(data, at: place + 8)
        case "VP8L": facts.size = try WebPReader.losslessSize(data, at: place + 8)
        default: return try takeExtended(data, length, &bytes, &facts)
        }
        facts.frameCount = 1
        facts.isAnimated = false
        facts.hasHead = true
        state = .done
        return false
    }

    private mutating func takeExtended(
        _ data: ArraySlice<UInt8>, _ length: Int, _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        let size = ImageSize(width: data.little(4, 3) + 1, height: data.little(7, 3) + 1)
        guard size.pixelCount <= Int(UInt32.max) else {
            throw ImageError(.malformed, at: bytes.offset + 12, "a canvas of \(size) pixels")
        }
        facts.size = size
        let flags = data.big(0, 1)
        isAnimated = flags & 0x02 != 0
        facts.isAnimated = isAnimated
        if !isAnimated { facts.frameCount = 1 }
        let hasExif = flags & 0x08 != 0
        // Exif data comes behind the pixels.
        facts.hasHead = true
        guard hasExif || isAnimated else {
            state = .done
            return false
        }
        bytes.skip(8 + length + (length & 1))
        state = .chunk(isFirst: false)
        return true
    }

    private mutating func takeChunk(
        _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        let place = bytes.offset
        guard place < end else {
            if isAnimated { facts.frameCount = frameCount }
            state = .done
            return false
        }
        guard place <= end - 8 else {
            throw ImageError(.malformed, at: place, "the file ends within a chunk's head")
        }
        guard let head = bytes.peek(8) else { return false }
        let length = head.little(4, 4)
        guard length <= end - place - 8 else {
            throw ImageError(.malformed, at: place + 4, "a chunk of \(length) bytes in a file of \(end)")
        }
        switch String(decoding: head.prefix(4), as: UTF8.self) {
        case "ANMF": frameCount += 1
        case "EXIF" where length <= WebPReader.chunkByteLimit && facts.orientation == nil:
            guard let chunk = bytes.peek(8 + length) else { return false }
            facts.orientation = ExifOrientation.orientation(in: chunk.dropFirst(8))
        default: break
        }
        bytes.skip(8 + length + (length & 1))
        return true
    }

    /// The size in the head of a key frame (RFC 6386 §9.1).
    private static func lossySize(_ data: ArraySlice<UInt8>, at place: Int) throws(ImageError) -> ImageSize {
        guard data.big(0, 1) & 1 == 0, data.big(3, 3) == 0x9D012A else {
            throw ImageError(.malformed, at: place, "the frame is no key frame of VP8")
        }
        let size = ImageSize(width: data.little(6, 2) & 0x3FFF, height: data.little(8, 2) & 0x3FFF)
        guard size.width > 0, size.height > 0 else {
            throw ImageError(.malformed, at: place + 6, "a frame of \(size) pixels")
        }
        return size
    }

    /// The size in the head of a lossless image (RFC 9649 §3.4).
    private static func losslessSize(_ data: ArraySlice<UInt8>, at place: Int) throws(ImageError) -> ImageSize
    {
        let bits = data.little(1, 4)
        guard data.big(0, 1) == 0x2F, bits >> 29 == 0 else {
            throw ImageError(.malformed, at: place, "the image is no VP8L of version 0")
        }
        return ImageSize(width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1)
    }
}
