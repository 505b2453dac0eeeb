/// Reads the chunks of a WebP (RFC 9649).
struct WebPReader: ImageFileReader {
    private enum Part {
        case header
        /// The first chunk, which contains the size.
        case firstChunk
        case chunk
    }

    private var part = Part.header
    /// The declared end of the file.
    private var end = 0
    private var frameCount = 0
    private var isAnimated = false

    mutating func step(_ file: inout ImageFile) throws(ImageError) -> ImageStep {
        if part == .header {
            guard let header = file.peek(12) else { return .needsBytes }
            end = header.little(4, 4) + 8
            guard end >= 20 else { throw file.error("a file of \(end) bytes", at: file.offset + 4) }
            file.skip(12)
            part = .firstChunk
            return .next
        }
        let place = file.offset
        if part == .chunk {
            guard place < end else {
                if isAnimated { file.frameCount = frameCount }
                return .done
            }
            guard place <= end - 8 else { throw file.error("the file ends within a chunk's head") }
        }
        guard let head = file.peek(8) else { return .needsBytes }
        let length = head.little(4, 4)
        guard length <= end - place - 8 else {
            throw file.error("a chunk of \(length) bytes in a file of \(end)", at: place + 4)
        }
        let type = String(decoding: head.prefix(4), as: UTF8.self)
        let next = try part == .chunk ? read(type, length, &file) : readFirst(type, length, &file)
        if next == .next { file.skip(8 + length + (length & 1)) }
        return next
    }

    private mutating func readFirst(_ type: String, _ length: Int, _ file: inout ImageFile) throws(ImageError)
        -> ImageStep
    {
        let needed: Int
        switch type {
        case "VP8 ", "VP8X": needed = 10
        case "VP8L": needed = 5
        default: throw file.error("the first chunk is not VP8, VP8L or VP8X")
        }
        guard length >= needed else { throw file.error("a chunk \(type) of \(length) bytes", at: file.offset + 4) }
        guard let data = file.peek(8 + needed)?.dropFirst(8) else { return .needsBytes }
        switch type {
        case "VP8 ": try readLossySize(data, &file)
        case "VP8L": try readLosslessSize(data, &file)
        default: return try readExtended(data, &file)
        }
        (file.isAnimated, file.frameCount) = (false, 1)
        file.hasHead = true
        return .done
    }

    private mutating func readExtended(_ data: ArraySlice<UInt8>, _ file: inout ImageFile) throws(ImageError)
        -> ImageStep
    {
        let size = ImageSize(width: data.little(4, 3) + 1, height: data.little(7, 3) + 1)
        guard size.pixelCount <= Int(UInt32.max) else {
            throw file.error("a canvas of \(size) pixels", at: file.offset + 12)
        }
        file.size = size
        let flags = data.big(0, 1)
        isAnimated = flags & 0x02 != 0
        file.isAnimated = isAnimated
        if !isAnimated { file.frameCount = 1 }
        // Exif data comes after the pixels.
        file.hasHead = true
        part = .chunk
        return isAnimated || flags & 0x08 != 0 ? .next : .done
    }

    private mutating func read(_ type: String, _ length: Int, _ file: inout ImageFile) -> ImageStep {
        if type == "ANMF" { frameCount += 1 }
        if type == "EXIF", length <= ImageFile.chunkByteLimit, file.orientation == nil {
            guard let chunk = file.peek(8 + length) else { return .needsBytes }
            file.orientation = ImageOrientation(exif: chunk.dropFirst(8))
        }
        return .next
    }

    /// Reads the size in the head of a key frame (RFC 6386 §9.1).
    private func readLossySize(_ data: ArraySlice<UInt8>, _ file: inout ImageFile) throws(ImageError) {
        guard data.big(0, 1) & 1 == 0, data.big(3, 3) == 0x9D012A else {
            throw file.error("the frame is not a key frame of VP8", at: file.offset + 8)
        }
        let size = ImageSize(width: data.little(6, 2) & 0x3FFF, height: data.little(8, 2) & 0x3FFF)
        guard size.width > 0, size.height > 0 else {
            throw file.error("a frame of \(size) pixels", at: file.offset + 14)
        }
        file.size = size
    }

    /// Reads the size in the head of a lossless image (RFC 9649 §3.4).
    private func readLosslessSize(_ data: ArraySlice<UInt8>, _ file: inout ImageFile) throws(ImageError) {
        let bits = data.little(1, 4)
        guard data.big(0, 1) == 0x2F, bits >> 29 == 0 else {
            throw file.error("the image is not VP8L of version 0", at: file.offset + 8)
        }
        file.size = ImageSize(width: (bits & 0x3FFF) + 1, height: (bits >> 14 & 0x3FFF) + 1)
    }
}
