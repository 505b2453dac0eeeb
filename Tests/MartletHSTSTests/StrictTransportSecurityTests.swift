import MartletHSTS
import Testing

@Suite("The field Strict-Transport-Security")
struct StrictTransportSecurityTests {
    @Test(
        "A value that conforms to the grammar is parsed",
        arguments: [
            ("max-age=31536000", 31_536_000, false), ("max-age=15768000 ; includeSubDomains", 15_768_000, true),
            ("max-age=\"31536000\"", 31_536_000, false), ("max-age=0", 0, false),
            ("max-age=0; includeSubDomains", 0, true), ("  includeSubDomains\t;  MAX-AGE = 007  ", 7, true),
            ("INCLUDESUBDOMAINS;Max-Age=1", 1, true), ("max-age=1;", 1, false), (";;max-age=1;; ;", 1, false),
            ("max-age=1; preload; x-y=z; q=\"a;max-age=2\\\"\"", 1, false), ("max-age=\"\\1\\2\"", 12, false),
            ("max-age=1;q=\"\"", 1, false), ("max-age=1; includeSubDomainsToo", 1, false),
            ("max-age=9223372036854775807", Int64.max, false), ("max-age=9223372036854775808", Int64.max, false),
            ("max-age=99999999999999999999999999; includeSubDomains", Int64.max, true),
        ])
    func valid(_ value: String, _ age: Int64, _ includesSubdomains: Bool) throws {
        let field = try #require(StrictTransportSecurity(value.utf8))
        #expect(field.maximumAge == age && field.includesSubdomains == includesSubdomains)
    }

    @Test(
        "A value that does not conform is ignored as a whole",
        arguments: [
            "", " ", ";", "includeSubDomains", "max-age", "max-age=", "max-age=;", "max-age=-1", "max-age=+1",
            "max-age=1.5", "max-age=1e3", "max-age=0x10", "max-age=\"\"", "max-age=\" 1\"", "max-age=\"1",
            "max-age='1'",
            "max-age=1 2", "max-age=\"1\"2", "max-age=1 includeSubDomains", "max-age=1, includeSubDomains",
            "max-age=1, max-age=2", "max-age=1; max-age=1", "max-age=1; MAX-AGE=2", "max-age=1; max-age",
            "max-age=1; includeSubDomains; includesubdomains", "max-age=1; x=1; X=2", "max-age=1; includeSubDomains=1",
            "max-age=1; includeSubDomains=\"\"", "max-age=1; =2", "max-age=1; x=", "max-age=1; x=\"\\", "max age=1",
            "max-age=1; \"includeSubDomains\"", "max-age=1; x=a b", "\u{FEFF}max-age=1", "max-age=１", "max-age=1\u{0}",
            "max-age=1; x=\"a", "max-age==1", "max-age=1; x/y",
        ])
    func invalid(_ value: String) { #expect(StrictTransportSecurity(value.utf8) == nil) }

    @Test("A value is never parsed as more than it is, wherever it is cut")
    func cut() {
        let value = Array("max-age=123; includeSubDomains; x=\"y\"".utf8)
        for count in value.indices {
            guard let field = StrictTransportSecurity(value[..<count]) else { continue }
            #expect(field.maximumAge <= 123 && (!field.includesSubdomains || count >= 30))
        }
    }

    @Test("A megabyte of directives is parsed in one pass")
    func long() {
        let many = "max-age=1" + (0..<100_000).map { ";x\($0)" }.joined()
        #expect(StrictTransportSecurity(many.utf8)?.maximumAge == 1)
        #expect(StrictTransportSecurity((many + ";X99999").utf8) == nil)
        #expect(StrictTransportSecurity(String(repeating: ";", count: 1_000_000).utf8) == nil)
    }
}
