import MartletURL
import Testing

@testable import MartletConditions
@testable import MartletTransport

@Suite("Parsing of pressure files")
struct MemoryStallTests {
    private static func parse(_ text: String) throws(MemoryStall.ParseError) -> MemoryStall {
        try MemoryStall(parsing: Array(text.utf8))
    }

    @Test("The kernel's shares are read in hundredths of a percent")
    func kernel() throws {
        let stall = try MemoryStallTests.parse(
            """
            some avg10=12.34 avg60=1.00 avg300=0.10 total=301898
            full avg10=0.07 avg60=0.00 avg300=0.00 total=227345

            """)
        #expect(stall == MemoryStall(some: 1_234, full: 7, someTotal: 301_898, fullTotal: 227_345))
    }

    @Test("A file without a line for full stalls, as on some kernels, reports none")
    func someAlone() throws {
        let stall = try MemoryStallTests.parse("some avg10=100.00 avg60=0.00 avg300=0.00 total=1")
        #expect(stall == MemoryStall(some: 10_000, someTotal: 1))
    }

    @Test("Unknown lines and fields are ignored")
    func unknown() throws {
        let stall = try MemoryStallTests.parse("most avg10=x\nsome avg5=y avg10=0.50 avg60=0.00 z\n\n")
        #expect(stall == MemoryStall(some: 50))
    }

    @Test(
        "A missing or invalid total is unknown",
        arguments: ["", "total=", "total=x", "total=-1", "total=99999999999999999999"])
    func noTotal(text: String) throws {
        let stall = try MemoryStallTests.parse("some avg10=0.00 avg60=0.00 avg300=0.00 \(text)")
        #expect(stall == MemoryStall())
    }

    @Test(
        "A kernel notification counts only if tasks stalled for the requested time since the previous one"
    )
    func growth() {
        var growth = StallDetector(limit: 100_000, total: 5_000_000)
        let totals: [UInt64?] = [5_004_000, 5_103_999, 5_203_999, 5_203_999, nil, 3, 100_002]
        // A notification that cannot be checked is accepted: the file has no total, or its count restarted.
        #expect(totals.map { growth.counts($0) } == [false, false, true, false, true, true, false])
        var unknown = StallDetector(limit: 100_000, total: nil)
        #expect([nil, 7, 8].map { unknown.counts($0) } == [true, true, false])
    }

    @Test(
        "The error for a malformed file names line and field",
        arguments: [
            ("", 1, "some"), ("\n\n", 3, "some"), ("full avg10=0.00 total=0\n", 2, "some"),
            ("some\n", 1, "avg10"), ("some avg60=0.00\n", 1, "avg10"), ("some avg10=\n", 1, "avg10"),
            ("some avg10=1\n", 1, "avg10"), ("some avg10=1.0\n", 1, "avg10"),
            ("some avg10=-1.00\n", 1, "avg10"), ("some avg10=1.000\n", 1, "avg10"),
            ("some avg10=.00\n", 1, "avg10"), ("some avg10=100.01\n", 1, "avg10"),
            ("some avg10=99999999999999999999.00\n", 1, "avg10"), ("some avg10=1.0x\n", 1, "avg10"),
            ("some avg10=1.2.3\n", 1, "avg10"), ("some avg10=0.00\nfull avg10=nan\n", 2, "avg10"),
            ("\u{0}\u{0}\u{0}", 1, "some"),
        ])
    func malformed(text: String, line: Int, field: String) {
        #expect(throws: MemoryStall.ParseError(line: line, field: field)) { try MemoryStallTests.parse(text) }
    }

    @Test("Every prefix of a file is parsed or rejected")
    func cut() throws {
        let whole = Array("some avg10=12.34 avg60=1.00 total=3\nfull avg10=0.07 total=2\n".utf8)
        for count in 0...whole.count {
            let stall = try? MemoryStall(parsing: whole.prefix(count))
            #expect(stall == nil || stall?.some == 1_234, "\(count) bytes")
        }
    }

    @Test("A megabyte of any text is rejected quickly")
    func long() {
        for byte in [UInt8(ascii: ","), UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "=")] {
            let bytes = [UInt8](repeating: byte, count: 1 << 20)
            #expect(throws: MemoryStall.ParseError.self) { try MemoryStall(parsing: bytes) }
        }
    }

    @Test(
        "The control group is read from the version 2 line, unless it is outside of the process's namespace",
        arguments: [
            ("0::/user.slice/app.scope\n", "/user.slice/app.scope"), ("0::/\n", "/"),
            ("9:name=systemd:/\n4:memory:/a\n0::/b\n", "/b"), ("0::/a:b\n", "/a:b"),
            ("0::/../../b\n", nil), ("4:memory:/a\n", nil), ("", nil), ("0::", nil), ("10::/a\n", nil),
        ] as [(String, String?)])
    func group(membership: String, group: String?) {
        #expect(PressureFile.group(in: Array(membership.utf8)) == group)
    }
}
