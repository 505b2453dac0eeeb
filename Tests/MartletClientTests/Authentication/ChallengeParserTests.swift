@testable import MartletCredentials
import Testing

@testable import MartletCore
@testable import MartletHosts

/// Parses fields and returns each challenge as one line of text.
private func read(_ values: String...) -> [String] {
    ChallengeParser.challenges(in: values.map { Array($0.utf8)[...] }).challenges.map(spelled)
}

private func spelled(_ challenge: HTTPChallenge) -> String {
    let parameters = challenge.parameters.map { "\($0.name)=\($0.value)" }
    return ([challenge.scheme] + (challenge.token68.map { ["<\($0)>"] } ?? []) + parameters)
        .joined(separator: "|")
}

private func errors(_ values: String...) -> [String] {
    ChallengeParser.challenges(in: values.map { Array($0.utf8)[...] }).errors.map {
        "\($0.fieldIndex):\($0.position) \($0.code)"
    }
}

@Suite("Challenge parsing")
struct ChallengeParserTests {
    @Test(
        "Challenges are parsed as the grammar specifies",
        arguments: [
            (#"Basic realm="foo""#, ["Basic|realm=foo"]),
            ("Basic", ["Basic"]),
            (#"BASIC REALM="foo""#, ["BASIC|realm=foo"]),
            ("Basic realm=foo", ["Basic|realm=foo"]),
            ("Basic realm='foo'", ["Basic|realm='foo'"]),
            (#"Basic realm="foo%20bar""#, ["Basic|realm=foo%20bar"]),
            ("Basic realm = \t\"foo\"", ["Basic|realm=foo"]),
            (#"Basic   realm="foo" "#, ["Basic|realm=foo"]),
            (#"Basic realm="\f\o\o""#, ["Basic|realm=foo"]),
            (#"Basic realm="\"foo\"""#, [#"Basic|realm="foo""#]),
            (#"Basic realm="a, b=c, Digest nonce=d""#, ["Basic|realm=a, b=c, Digest nonce=d"]),
            (#"Basic realm="""#, ["Basic|realm="]),
            (#"Basic , realm="foo""#, ["Basic|realm=foo"]),
            (#"Basic realm="foo", bar="xyz",, a=b,,,c=d"#, ["Basic|realm=foo|bar=xyz|a=b|c=d"]),
            (#"Basic realm="foo-é""#, ["Basic|realm=foo-é"]),
            (#" ,  , Basic realm=r ,, "#, ["Basic|realm=r"]),
            ("A, B", ["A", "B"]),
            (#"Basic realm="basic", Newauth"#, ["Basic|realm=basic", "Newauth"]),
            (#"Newauth, Basic realm="basic""#, ["Newauth", "Basic|realm=basic"]),
            (#"Digest,Basic realm="r""#, ["Digest", "Basic|realm=r"]),
            (#"Basic realm = "r",Basic realm=s"#, ["Basic|realm=r", "Basic|realm=s"]),
            (
                #"Newauth realm="apps", type=1, title="Login to \"apps\"", Basic realm="simple""#,
                [#"Newauth|realm=apps|type=1|title=Login to "apps""#, "Basic|realm=simple"]
            ),
            (
                #"Newauth realm="N R", basic=foo, Basic realm="B R""#,
                ["Newauth|realm=N R|basic=foo", "Basic|realm=B R"]
            ),
            (#"Basic foo="realm=nottherealm", realm="basic""#, ["Basic|foo=realm=nottherealm|realm=basic"]),
            ("Negotiate", ["Negotiate"]),
            ("Negotiate YWJj+/==", ["Negotiate|<YWJj+/==>"]),
            ("Negotiate YWJj==, NTLM , Basic realm=r", ["Negotiate|<YWJj==>", "NTLM", "Basic|realm=r"]),
            ("Other a.b_c~d-e", ["Other|<a.b_c~d-e>"]),
            ("", []), (" \t,,, ", []),
        ])
    func grammar(_ value: String, _ expected: [String]) {
        #expect(read(value) == expected)
        #expect(errors(value).isEmpty)
    }

    @Test("Several fields are parsed as one list")
    func fields() {
        #expect(
            read(#"Newauth realm="newauth""#, "", #"Basic realm="basic", Digest realm=d"#, "nonce=n")
                == ["Newauth|realm=newauth", "Basic|realm=basic", "Digest|realm=d|nonce=n"])
    }

    @Test(
        "Malformed challenges with only one possible meaning are parsed",
        arguments: [
            // Values without quotes that are not tokens.
            ("Digest nonce=a/b+c==, uri=/x?y=1, realm=r", ["Digest|nonce=a/b+c==|uri=/x?y=1|realm=r"]),
            (#"Basic realm=\f\o\o"#, [#"Basic|realm=\f\o\o"#]),
            ("Digest realm=, nonce=n", ["Digest|realm=|nonce=n"]),
            (#"Digest realm="", nonce="n""#, ["Digest|realm=|nonce=n"]),
            // Missing or misplaced commas.
            (#"Digest realm="r" nonce="n"  qop=auth"#, ["Digest|realm=r|nonce=n|qop=auth"]),
            (#"Basic realm="a" Digest realm="b""#, ["Basic|realm=a", "Digest|realm=b"]),
            (#"Basic, realm="foo""#, ["Basic|realm=foo"]),
            // A repeated parameter with the same value.
            ("Basic realm=r, realm=r", ["Basic|realm=r"]),
        ])
    func lenience(_ value: String, _ expected: [String]) {
        #expect(read(value) == expected)
        #expect(errors(value).isEmpty)
    }

    @Test(
        "A malformed challenge is skipped, with its position as a fault, and the others are used",
        arguments: [
            (#"Basic realm="basic"#, [], ["0:12 unterminatedString"]),
            (#"A, Basic realm="basic, B"#, ["A"], ["0:15 unterminatedString"]),
            (#"Basic realm="a\"#, [], ["0:12 unterminatedString"]),
            (#"Digest, Basic realm="my"realm", C"#, ["Digest"], ["0:24 unexpectedTextAfterValue"]),
            (#"Basic realm=my"realm", C d=e"#, ["C|d=e"], ["0:14 unexpectedTextAfterValue"]),
            ("Basic realm=foo bar, C", ["C"], ["0:16 unexpectedTextAfterValue"]),
            ("Other realm=a, realm=b, x=y, C", ["C"], ["0:15 repeatedParameter"]),
            (#"realm="x", Basic realm=r"#, ["Basic|realm=r"], ["0:0 parameterWithoutScheme"]),
            ("=a, Basic", ["Basic"], ["0:0 notAToken"]),
            (#""x", Basic"#, ["Basic"], ["0:0 notAToken"]),
            (#"Basic "x", C"#, ["C"], ["0:6 notAToken"]),
            (#"A, Basic"realm", C"#, ["A", "C"], ["0:8 notAToken"]),
            ("Basic a b, C", ["C"], ["0:8 notAToken"]),
            ("Digest realm=r, @, nonce=n, C", ["C"], ["0:16 notAToken"]),
            ("Basic realm=\"a\u{7F}b, c\", C", ["C"], ["0:14 controlByte"]),
            ("Basic realm=\"a\\\u{1}\", C", ["C"], ["0:15 controlByte"]),
            // A challenge has either a token68 or parameters.
            ("Other abc==, realm=r", ["Other|<abc==>"], ["0:13 parameterAfterToken68"]),
            ("Other a/b=, realm=r", ["Other|<a/b=>"], ["0:12 parameterAfterToken68"]),
        ])
    func malformed(_ value: String, _ expected: [String], _ places: [String]) {
        #expect(read(value) == expected)
        #expect(errors(value) == places)
    }

    @Test("A fault contains the field name, the field's index and the byte position, but no value")
    func faultText() throws {
        let values = ["Basic realm=r", #"Digest nonce="hunter2"#].map { Array($0.utf8)[...] }
        let result = ChallengeParser.challenges(in: values, field: "Proxy-Authenticate")
        #expect(result.challenges.count == 1)
        let fault = try #require(result.errors.first)
        #expect(
            fault.description
                == "Proxy-Authenticate (the one at index 1), byte 13: a quoted string is not closed")
    }

    @Test("Fault positions are relative to the field value, also for a slice of a head")
    func slicedPositions() {
        let head = Array("xxxxxBasic realm=\"".utf8)
        let errors = ChallengeParser.challenges(in: [head[5...]]).errors
        #expect(errors.map(\.position) == [12])
    }

    @Test("Invalid UTF-8 is kept as raw bytes and decoded as Latin-1")
    func latin1() throws {
        let value = Array("Basic realm=\"foo-".utf8) + [0xE4] + Array("\"".utf8)
        let challenge = try #require(ChallengeParser.challenges(in: [value[...]]).challenges.first)
        #expect(challenge.realm == "foo-ä")
        #expect(challenge.parameters.first?.rawValue == Array("foo-".utf8) + [0xE4])
    }

    @Test("Parameter names and schemes are matched without regard to case")
    func lookUp() throws {
        let value = Array(#"DIgEsT rEaLm="r", NONCE=n"#.utf8)
        let challenge = try #require(ChallengeParser.challenges(in: [value[...]]).challenges.first)
        #expect(challenge.isScheme("digest") && !challenge.isScheme("basic"))
        #expect(challenge["Nonce"] == "n" && challenge.realm == "r" && challenge["opaque"] == nil)
    }

    @Test("Authentication-Info is parsed as parameters without a scheme")
    func information() {
        let value = Array(#"rspauth="ab", , nc=00000001,qop=auth"#.utf8)
        let result = ChallengeParser.parameters(in: [value[...], Array("nextnonce=\"x\"".utf8)[...]])
        #expect(
            result.parameters.map { "\($0.name)=\($0.value)" }
                == ["rspauth=ab", "nc=00000001", "qop=auth", "nextnonce=x"])
        #expect(result.errors.isEmpty)
    }

    @Test(
        "A malformed Authentication-Info is ignored as a whole",
        arguments: ["nextnonce=\"x", "nextnonce=a, Digest", "Digest nextnonce=a", "nextnonce=a, nextnonce=b"])
    func malformedInformation(_ value: String) {
        let result = ChallengeParser.parameters(in: [Array(value.utf8)[...]])
        #expect(result.parameters.isEmpty && !result.errors.isEmpty)
    }

    @Test("The numbers of challenges, parameters and faults and the length of values are limited")
    func bounds() {
        let many = (0..<1000).map { "S\($0)" }.joined(separator: ",")
        #expect(read(many).count == ChallengeParser.challengeLimit)
        #expect(errors(many).count == 1)
        let parameters = "S " + (0..<1000).map { "p\($0)=v" }.joined(separator: ",")
        #expect(read(parameters, "T") == ["T"])
        #expect(errors(parameters).map { $0.hasSuffix("tooMany") } == [true])
        let long = "S p=" + String(repeating: "x", count: ChallengeParser.valueLimit + 1)
        #expect(read(long).isEmpty && errors(long) == ["0:4 tooLong"])
        #expect(errors(String(repeating: "=,", count: 1000)).count == 1)
        #expect(errors(String(repeating: "a=,", count: 1000)).count == ChallengeParser.errorLimit)
    }

    @Test(
        "A field of a megabyte is parsed in linear time",
        arguments: [
            ",", "a,", "a=b,", "\"", "\\", "a=\"", "a=\"\\", "a=\"\u{1}", "=", " ", "a ", "Basic ", "a=b ",
            "\",",
            "a==,", "a=\"b\" ", "a\"",
        ])
    func linear(_ piece: String) {
        let megabyte = Array(String(repeating: piece, count: (1 << 20) / piece.utf8.count).utf8)
        for prefix in ["", "Basic ", "Basic a="] {
            let bytes = Array(prefix.utf8) + megabyte
            let (_, time) = ThreadTime.of { ChallengeParser.challenges(in: [bytes[...]]) }
            // An optimized build takes a few milliseconds. The bound is for debug builds on slow machines.
            // Quadratic time would take minutes.
            #expect(time < .seconds(20), "\(prefix)\(piece)")
        }
    }
}
