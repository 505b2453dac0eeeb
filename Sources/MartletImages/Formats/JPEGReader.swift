/// The markers of a JPEG up to its pixels (ITU-T T.81 Annex B).
struct JPEGReader: ImageFileReader {
    private enum State: Equatable {
        case start
        /// A marker comes next.
        case marker
        /// The height stands behind the first scan, in a DNL segment; entropy-coded data comes next.
        case scan
        case done
    }

    private var state = State.start
    private var hasFrame = false
    /// The width of a frame whose height stands behind the first scan.
    private var width: Int?

    var isDone: Bool { state == .done }

    mutating func step(_ bytes: inout ImageBytes, _ facts: inout ImageFacts) throws(ImageError) -> Bool {
        switch state {
        case .done: return false
        case .start:
            guard bytes.take(2) != nil else { return false }
            state = .marker
            return true
        case .scan: return try takeScan(&bytes, &facts)
        case .marker: return try takeMarker(&bytes, &facts)
        }
    }

    private mutating func takeMarker(
        _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        guard let first = bytes.byte() else { return false }
        guard first == 0xFF else {
            throw ImageError(.malformed, at: bytes.offset, "there is no marker where one must be")
        }
        guard let marker = bytes.byte(1) else { return false }
        switch marker {
        case 0xFF:
            // A fill byte (§B.1.1.2).
            bytes.skip(1)
            return true
        case 0x01, 0xD0...0xD7:
            bytes.skip(2)
            return true
        case 0x00, 0xD8:
            throw ImageError(.malformed, at: bytes.offset, "the marker \(marker) within the head")
        case 0xD9: throw ImageError(.malformed, at: bytes.offset, "the end of the image before its pixels")
        default: break
        }
        guard let head = bytes.peek(4) else { return false }
        let length = head.big(2, 2)
        guard length >= 2 else {
            throw ImageError(.malformed, at: bytes.offset + 2, "a segment of \(length) bytes")
        }
        switch marker {
        case 0xC0...0xC3, 0xC5...0xC7, 0xC9...0xCB, 0xCD...0xCF:
            guard let segment = bytes.peek(length + 2) else { return false }
            try takeFrame(segment, at: bytes.offset, &facts)
        case 0xE1 where facts.orientation == nil:
            guard let segment = bytes.peek(length + 2) else { return false }
            let data = segment.dropFirst(4)
            if data.starts(with: Array("Exif\0".utf8)) {
                facts.orientation = ExifOrientation.orientation(in: data)
            }
        case 0xDA:
            guard hasFrame else { throw ImageError(.malformed, at: bytes.offset, "a scan before its frame") }
            if width != nil {
                bytes.skip(length + 2)
                state = .scan
                return true
            }
            facts.hasHead = true
            state = .done
            return false
        default: break
        }
        bytes.skip(length + 2)
        return true
    }

    /// The head of a frame (§B.2.2).
    private mutating func takeFrame(
        _ segment: ArraySlice<UInt8>, at place: Int, _ facts: inout ImageFacts
    ) throws(ImageError) {
        // Of a hierarchical image the first frame is not the largest, and what all come to is not told here.
        guard !hasFrame else { throw ImageError(.malformed, at: place, "a second frame") }
        let length = segment.count - 2
        guard length >= 8, length == 8 + 3 * segment.big(9, 1), segment.big(9, 1) > 0 else {
            throw ImageError(.malformed, at: place + 2, "the head of a frame has \(length) bytes")
        }
        let size = ImageSize(width: segment.big(7, 2), height: segment.big(5, 2))
        guard size.width > 0 else { throw ImageError(.malformed, at: place + 7, "a frame without width") }
        hasFrame = true
        facts.frameCount = 1
        facts.isAnimated = false
        if size.height == 0 { width = size.width } else { facts.size = size }
    }

    /// Entropy-coded data, up to the segment that has the number of lines (§B.2.5).
    private mutating func takeScan(
        _ bytes: inout ImageBytes, _ facts: inout ImageFacts
    ) throws(ImageError) -> Bool {
        let place = bytes.offset
        guard bytes.skipToMarker() else { return false }
        // How far it may go is checked at the marker, be the data before it here at once or not.
        guard bytes.offset == place else { return true }
        guard let marker = bytes.byte(1) else { return false }
        switch marker {
        case 0xFF:
            bytes.skip(1)
            return true
        case 0x00, 0xD0...0xD7:
            bytes.skip(2)
            return true
        case 0xDC:
            guard let segment = bytes.peek(6) else { return false }
            let height = segment.big(4, 2)
            guard segment.big(2, 2) == 4, height > 0, let width else {
                throw ImageError(.malformed, at: bytes.offset, "the number of lines is malformed")
            }
            facts.size = ImageSize(width: width, height: height)
            facts.hasHead = true
            state = .done
            return false
        default: throw ImageError(.malformed, at: bytes.offset, "the height of the frame is nowhere")
        }
    }
}
