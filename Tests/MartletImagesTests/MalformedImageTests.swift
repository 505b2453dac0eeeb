import MartletImages
import MartletTesting
import MartletTestSupport
import Testing

@Suite("Malformed images")
struct MalformedImageTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let bytes: [UInt8]
        let code: ImageError.Code
        let offset: Int

        init(_ name: String, _ bytes: [UInt8], _ code: ImageError.Code = .malformed, at offset: Int) {
            testDescription = name
            self.bytes = bytes
            self.code = code
            self.offset = offset
        }
    }

    private static func png(_ chunks: [UInt8]...) -> [UInt8] {
        ImageFiles.pngSignature + chunks.flatMap { $0 }
    }

    private static func changed(_ bytes: [UInt8], _ place: Int, _ byte: UInt8) -> [UInt8] {
        var bytes = bytes
        bytes[place] = byte
        return bytes
    }

    static let cases: [Case] = [
        Case("text", Array("<html>".utf8), .unknownFormat, at: 0),
        Case("a PNG without its high bit", changed(ImageFiles.png(1, 1), 0, 9), .unknownFormat, at: 0),
        Case("a GIF of another version", Array("GIF88a".utf8), .unknownFormat, at: 0),
        Case("a RIFF of sound", Array("RIFF\u{10}\0\0\0WAVE".utf8), .unknownFormat, at: 0),
        Case("nothing", [], .truncated, at: 0),
        Case("PNG: no IHDR", png(ImageFiles.chunk("IDAT"), ImageFiles.header(1, 1)), at: 8),
        Case("PNG: a wrong checksum", changed(ImageFiles.png(1, 1), 29, 0), at: 8),
        Case("PNG: no width", png(ImageFiles.header(0, 1)), at: 16),
        Case("PNG: a negative height", png(ImageFiles.header(1, 1 << 31)), at: 16),
        Case("PNG: 16 bits of a palette", png(ImageFiles.header(1, 1, depth: 16, colour: 3)), at: 24),
        Case("PNG: colour type 5", png(ImageFiles.header(1, 1, colour: 5)), at: 24),
        Case("PNG: two IHDR", png(ImageFiles.header(1, 1), ImageFiles.header(1, 1)), at: 33),
        Case(
            "PNG: a chunk of 4 GiB",
            png(ImageFiles.header(1, 1), [0xFF, 0xFF, 0xFF, 0xFF] + Array("tEXt".utf8)), at: 33),
        Case("PNG: a type of digits", png(ImageFiles.header(1, 1), ImageFiles.chunk("1234")), at: 37),
        Case("PNG: no pixels", png(ImageFiles.header(1, 1), ImageFiles.chunk("IEND")), at: 33),
        Case(
            "PNG: no frames",
            ImageFiles.png(1, 1, before: ImageFiles.chunk("acTL", [UInt8](repeating: 0, count: 8))), at: 41),
        Case("PNG: too many pixels", png(ImageFiles.header(60_000, 60_000)), .limitExceeded, at: 8),
        Case(
            "PNG: the widest of all", png(ImageFiles.header(0x7FFF_FFFF, 0x7FFF_FFFF)), .limitExceeded, at: 8),
        Case("JPEG: no marker", [0xFF, 0xD8, 0xFF, 0xE0, 0, 2, 0x12], at: 6),
        Case("JPEG: a segment of one byte", [0xFF, 0xD8, 0xFF, 0xE0, 0, 1], at: 4),
        Case("JPEG: the end at once", [0xFF, 0xD8, 0xFF, 0xD9], at: 2),
        Case("JPEG: two beginnings", [0xFF, 0xD8, 0xFF, 0xD8], at: 2),
        Case("JPEG: a scan without a frame", [0xFF, 0xD8] + ImageFiles.segment(0xDA, [0]), at: 2),
        Case("JPEG: two frames", [0xFF, 0xD8] + ImageFiles.frame(1, 1) + ImageFiles.frame(1, 1), at: 21),
        Case("JPEG: no width", [0xFF, 0xD8] + ImageFiles.frame(0, 1), at: 9),
        Case("JPEG: no components", [0xFF, 0xD8] + ImageFiles.frame(1, 1, components: 0), at: 4),
        Case("JPEG: a short frame", [0xFF, 0xD8] + ImageFiles.segment(0xC0, [8, 0, 1, 0, 1, 3]), at: 4),
        Case("JPEG: a height that never comes", ImageFiles.jpeg(9, 0), at: 39),
        Case("GIF: no width", ImageFiles.gif(0, 1), at: 6),
        Case("GIF: no frames", Array("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 0x3B], at: 13),
        Case("GIF: an unknown block", Array("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 0x77], at: 13),
        Case(
            "GIF: codes of 12 bits",
            Array("GIF89a".utf8) + [1, 0, 1, 0, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0, 1, 0, 0, 12], at: 23),
        Case("WebP: a file of no bytes", Array("RIFF\0\0\0\0WEBP".utf8), at: 4),
        Case(
            "WebP: no picture first", ImageFiles.riff([ImageFiles.webpChunk("ICCP", [1, 2, 3, 4])]), at: 12),
        Case(
            "WebP: a chunk beyond the file", changed(ImageFiles.riff([ImageFiles.lossy(1, 1)]), 17, 1), at: 16
        ),
        Case(
            "WebP: a chunk too short", ImageFiles.riff([ImageFiles.webpChunk("VP8L", [0x2F, 0, 0, 0])]),
            at: 16),
        Case("WebP: no key frame", changed(ImageFiles.riff([ImageFiles.lossy(1, 1)]), 20, 0x11), at: 20),
        Case("WebP: no start code", changed(ImageFiles.riff([ImageFiles.lossy(1, 1)]), 23, 0), at: 20),
        Case("WebP: no width", ImageFiles.riff([ImageFiles.lossy(0, 1)]), at: 26),
        Case(
            "WebP: VP8L of version 1", changed(ImageFiles.riff([ImageFiles.lossless(1, 1)]), 24, 0x30), at: 20
        ),
        Case(
            "WebP: a canvas of 2 to the 48",
            ImageFiles.riff([ImageFiles.extended(1 << 24, 1 << 24, flags: 0)]), at: 24),
        Case(
            "WebP: a chunk's head cut",
            ImageFiles.riff([ImageFiles.extended(1, 1, flags: 2), Array("ANMF".utf8)]), at: 30),
        Case(
            "WebP: too many pixels", ImageFiles.riff([ImageFiles.extended(60_000, 60_000, flags: 0)]),
            .limitExceeded,
            at: 12),
    ]

    @Test("The error for a malformed file has its position, in pieces of any size", arguments: cases)
    func malformed(_ row: Case) {
        for size in [1, 5, .max] {
            let error = Self.error(row.bytes, size: size)
            #expect(error?.code == row.code, "\(String(describing: error)) in pieces of \(size)")
            #expect(error?.byteOffset == row.offset, "\(String(describing: error)) in pieces of \(size)")
        }
    }

    private static func error(
        _ bytes: [UInt8], size: Int, limits: ImageLimits = .default
    ) -> ImageError? {
        var reader = ImageInfoReader(limits: limits)
        do throws(ImageError) {
            var fed = 0
            while fed < bytes.count {
                let end = size < bytes.count - fed ? fed + size : bytes.count
                try reader.feed(bytes[fed..<end])
                fed = end
            }
            _ = try reader.finish()
            return nil
        } catch {
            return error
        }
    }

    @Test("Changing any byte does not trap a reader, and errors point into the file")
    func changes() async {
        for row in ImageInfoTests.cases where row.bytes.count < 1000 {
            await Task.yield()
            for place in row.bytes.indices {
                for byte in [0, 0xFF, 0x5A] as [UInt8] {
                    let bytes = Self.changed(row.bytes, place, byte)
                    let error = Self.error(bytes, size: .max)
                    #expect((0...bytes.count).contains(error?.byteOffset ?? 0))
                    #expect(Self.error(bytes, size: 1) == error)
                }
            }
        }
    }

    @Test("An endless header stops at its limit without being stored")
    func endless() {
        let segment = ImageFiles.segment(0xE5, [UInt8](repeating: 0, count: 60_000))
        var bytes: [UInt8] = [0xFF, 0xD8]
        for _ in 0..<20 { bytes += segment }
        let error = Self.error(bytes, size: 4096, limits: ImageLimits(headByteCount: 200_000))
        #expect(error?.code == .limitExceeded)
        #expect(error?.byteOffset == 200_000)
        #expect(
            Self.error([0xFF, 0xD8] + [UInt8](repeating: 0xFF, count: 1 << 20), size: .max)?.code
                == .truncated)
    }

    @Test("A height beyond the limit is not found, however the preceding scan arrives")
    func linesBehindLimit() {
        let frame: [UInt8] = [0xFF, 0xC0, 0, 11, 8, 0, 0, 0, 9, 1, 1, 0x11, 0]
        let scan: [UInt8] = [0xFF, 0xDA, 0, 8, 1, 1, 0, 0, 0x3F, 0]
        let head = [0xFF, 0xD8] + frame + scan
        let lines: [UInt8] = [0xFF, 0xDC, 0, 4, 0, 77]
        let limits = ImageLimits(headByteCount: 64)
        for count in [0, 64 - head.count, 65 - head.count, 200] {
            for end in [lines, []] {
                let bytes = head + [UInt8](repeating: 1, count: count) + end
                let whole = Self.error(bytes, size: .max, limits: limits)
                let isFound = !end.isEmpty && head.count + count <= 64
                #expect((whole == nil) == isFound, "\(count)")
                if head.count + count > 64 {
                    #expect(whole?.code == .limitExceeded && whole?.byteOffset == 64)
                }
                for size in [1, 3, 64] {
                    #expect(Self.error(bytes, size: size, limits: limits) == whole, "\(count), \(size)")
                }
            }
        }
    }

    @Test(
        "A mebibyte of sub-blocks, segments or fill bytes takes linear time",
        arguments: [
            (Array(ImageFiles.gif(4, 5).dropLast()) + [0x21, 0xFE], [0x01, 0x00]), ([0xFF, 0xD8], [0xFF]),
            ([0xFF, 0xD8], [0xFF, 0xFE, 0, 2]),
        ], [.max, 100])
    func linear(_ file: (head: [UInt8], unit: [UInt8]), _ pieceByteCount: Int) async {
        let growth = await ComplexityProbe.measure((1 << 17, 1 << 20)) { byteCount in
            var units = file.unit
            while units.count < byteCount { units += units }
            let bytes = file.head + units
            return { _ = Self.error(bytes, size: pieceByteCount) }
        }
        #expect(growth.isLinear, "\(growth)")
    }

    @Test("An error persists")
    func errorStays() throws {
        var reader = ImageInfoReader()
        #expect(throws: ImageError.self) { try reader.feed([1]) }
        #expect(throws: ImageError.self) { try reader.feed(ImageFiles.png(1, 1)) }
        #expect(throws: ImageError.self) { try reader.finish() }
    }
}
