/// Checks the references of a binary property list: an object graph that any bytes can describe.
///
/// The format has no specification but CFBinaryPList.c: `bplist0`, a digit, objects, a table of their offsets, and a
/// trailer of 32 bytes.
struct BinaryPropertyListScanner {
    /// The extent of an object, once all that it refers to is known.
    private struct Extent {
        var depth: Int
        var objectCount: Int
    }

    /// An array or a dictionary whose references are being followed.
    private struct Frame {
        let object: Int
        /// The references that are left, in the bytes.
        var position: Int
        var remaining: Int
        var extent = Extent(depth: 1, objectCount: 1)
    }

    private enum Mark {
        case new
        case open
        case done(Extent)
    }

    private let bytes: [UInt8]
    private let objectCount: Int
    private let offsetSize: Int
    private let referenceSize: Int
    private let tableOffset: Int
    private let topObject: Int

    /// Reads the trailer.
    init(_ bytes: [UInt8]) throws(PropertyListError) {
        let trailer = bytes.count - 32
        guard trailer > 8 else { throw PropertyListError(reason: .malformed) }
        func number(at offset: Int) -> Int? {
            Int(exactly: bytes[offset..<offset + 8].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
        }
        let (offsetSize, referenceSize) = (Int(bytes[trailer + 6]), Int(bytes[trailer + 7]))
        guard let objectCount = number(at: trailer + 8), let topObject = number(at: trailer + 16),
            let tableOffset = number(at: trailer + 24), (1...8).contains(offsetSize),
            (1...8).contains(referenceSize), topObject < objectCount, tableOffset >= 9,
            tableOffset < trailer, objectCount <= (trailer - tableOffset) / offsetSize
        else { throw PropertyListError(reason: .malformed) }
        self.bytes = bytes
        self.objectCount = objectCount
        self.offsetSize = offsetSize
        self.referenceSize = referenceSize
        self.tableOffset = tableOffset
        self.topObject = topObject
    }

    /// Follows all references from the top object, each object once.
    ///
    /// Objects may be shared: a decoder visits them again for each reference, which a few bytes can make 2⁶⁴ visits.
    mutating func check() throws(PropertyListError) {
        var marks = [Mark](repeating: .new, count: objectCount)
        var frames: [Frame] = []
        var extent = try enter(topObject, &marks, &frames)
        while let last = frames.indices.last {
            if let known = extent {
                frames[last].extent.objectCount += known.objectCount
                frames[last].extent.depth = max(frames[last].extent.depth, known.depth + 1)
                guard frames[last].extent.objectCount <= PropertyListScanner.objectLimit else {
                    throw PropertyListError(reason: .tooManyObjects)
                }
                guard frames[last].extent.depth <= PropertyListScanner.depthLimit else {
                    throw PropertyListError(reason: .tooDeep)
                }
                extent = nil
            }
            if frames[last].remaining == 0 {
                let done = frames.removeLast()
                marks[done.object] = .done(done.extent)
                extent = done.extent
                continue
            }
            guard let object = number(at: frames[last].position, size: referenceSize) else {
                throw PropertyListError(reason: .malformed)
            }
            frames[last].position += referenceSize
            frames[last].remaining -= 1
            extent = try enter(object, &marks, &frames)
        }
    }

    /// Begins an object: its extent where that is known at once, else a frame for what it refers to.
    private func enter(
        _ object: Int, _ marks: inout [Mark], _ frames: inout [Frame]
    ) throws(PropertyListError) -> Extent? {
        guard object < objectCount else { throw PropertyListError(reason: .malformed) }
        switch marks[object] {
        case .open: throw PropertyListError(reason: .cycle)
        case .done(let extent): return extent
        case .new: break
        }
        guard let offset = number(at: tableOffset + object * offsetSize, size: offsetSize),
            offset < tableOffset
        else { throw PropertyListError(reason: .malformed) }
        let marker = bytes[offset]
        let (unit, isContainer): (Int, Bool) =
            switch marker & 0xF0 {
            case 0x40, 0x50: (1, false)
            case 0x60: (2, false)
            case 0xA0, 0xC0: (referenceSize, true)
            case 0xD0: (2 * referenceSize, true)
            default: (0, false)
            }
        let leaf = Extent(depth: 0, objectCount: 1)
        guard unit > 0 else {
            marks[object] = .done(leaf)
            return leaf
        }
        let (start, count) = try counted(marker, at: offset + 1, unit: unit)
        guard isContainer else {
            marks[object] = .done(leaf)
            return leaf
        }
        guard frames.count < PropertyListScanner.depthLimit else { throw PropertyListError(reason: .tooDeep) }
        marks[object] = .open
        frames.append(Frame(object: object, position: start, remaining: count * (unit / referenceSize)))
        return nil
    }

    /// The place and the number of an object's parts, all of which lie before the table of offsets.
    private func counted(
        _ marker: UInt8, at offset: Int, unit: Int
    ) throws(PropertyListError) -> (start: Int, count: Int) {
        var (start, count) = (offset, Int(marker & 0x0F))
        if count == 0x0F {
            guard offset < tableOffset, bytes[offset] & 0xF0 == 0x10, bytes[offset] & 0x0F <= 3 else {
                throw PropertyListError(reason: .malformed)
            }
            let size = 1 << Int(bytes[offset] & 0x0F)
            guard offset + 1 + size <= tableOffset, let number = number(at: offset + 1, size: size) else {
                throw PropertyListError(reason: .malformed)
            }
            (start, count) = (offset + 1 + size, number)
        }
        guard start <= tableOffset, count <= (tableOffset - start) / unit else {
            throw PropertyListError(reason: .malformed)
        }
        return (start, count)
    }

    /// A big-endian number; `nil` where it is greater than any count can be.
    private func number(at offset: Int, size: Int) -> Int? {
        Int(exactly: bytes[offset..<offset + size].reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
    }
}
