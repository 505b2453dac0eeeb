@testable import MartletCredentials
import MartletTransport
import MartletURL
import Testing

@testable import MartletCore

/// Parses the first challenge of a field value.
func challenge(_ value: String) throws -> HTTPChallenge {
    try #require(ChallengeParser.challenges(in: [Array(value.utf8)[...]]).challenges.first)
}

/// Makes the request that a Digest response is computed for.
private func digested(
    _ method: String, _ target: String, _ body: AuthenticatedBody = .bytes([])
) throws -> AuthenticatedRequest {
    AuthenticatedRequest(origin: try HTTPURL("http://a/").origin, method: method, target: target, body: body)
}

/// Returns the parameters of an authorization value, unquoted.
func parameters(_ value: AuthorizationValue) throws -> [String: String] {
    let challenge = try #require(ChallengeParser.challenges(in: [value.bytes[...]]).challenges.first)
    return Dictionary(uniqueKeysWithValues: challenge.parameters.map { ($0.name, $0.value) })
}

@Suite("Digest responses")
struct DigestAuthorizationTests {
    /// Computes the first response to a challenge.
    private func answer(
        _ text: String, user: String, password: String, cnonce: String, method: String = "GET",
        target: String, body: AuthenticatedBody = .bytes([])
    ) throws -> DigestAuthorization {
        let challenge = try #require(DigestChallenge(challenge(text)))
        let cnonce = Array(cnonce.utf8)
        let key = try DigestAuthorization.key(
            for: challenge, user: user, password: password, clientNonce: cnonce)
        let session = DigestSession(challenge: challenge, clientNonce: cnonce, key: key)
        return try #require(
            try DigestAuthorization(
                session: session, user: user,
                request: try digested(method, target, body), useCount: 1,
                clientNonce: cnonce))
    }

    private func text(_ authorization: DigestAuthorization) -> String {
        String(decoding: authorization.value.bytes, as: UTF8.self)
    }

    @Test("The example of RFC 2617 gives its response")
    func rfc2617() throws {
        let answer = try answer(
            #"Digest realm="testrealm@host.com", qop="auth,auth-int", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", "#
                + #"opaque="5ccc069c403ebaf9f0171e9517f40e41""#,
            user: "Mufasa", password: "Circle Of Life", cnonce: "0a4f113b", target: "/dir/index.html")
        #expect(
            text(answer)
                == #"Digest username="Mufasa", realm="testrealm@host.com", nonce="dcd98b7102dd2f0e8b11d0f600bfb0c093", "#
                + #"uri="/dir/index.html", cnonce="0a4f113b", nc=00000001, qop=auth, "#
                + #"response="6629fae49393a05397450978507c4ef1", opaque="5ccc069c403ebaf9f0171e9517f40e41""#)
    }

    @Test(
        "The example of RFC 7616 gives its responses for MD5 and SHA-256",
        arguments: [
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
            ("SHA-256", "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"),
        ])
    func rfc7616(_ algorithm: String, _ response: String) throws {
        let answer = try answer(
            #"Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm="# + algorithm
                + #", nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", "#
                + #"opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS""#,
            user: "Mufasa", password: "Circle of Life",
            cnonce: "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ", target: "/dir/index.html")
        let sent = try parameters(answer.value)
        #expect(sent["response"] == response)
        #expect(sent["algorithm"] == algorithm && sent["nc"] == "00000001" && sent["qop"] == "auth")
    }

    /// Follows erratum 4897: the RFC's own values were computed with SHA-512, truncated to 256 bits.
    @Test("The example of RFC 7616 for SHA-512-256 with userhash gives the response of its erratum")
    func rfc7616UserHash() throws {
        let answer = try answer(
            #"Digest realm="api@example.org", qop="auth", algorithm=SHA-512-256, "#
                + #"nonce="5TsQWLVdgBdmrQ0XsxbDODV+57QdFR34I9HAbC/RVvkK", "#
                + #"opaque="HRPCssKJSGjCrkzDg8OhwpzCiGPChXYjwrI2QmXDnsOS", charset=UTF-8, userhash=true"#,
            user: "J\u{E4}s\u{F8}n Doe", password: "Secret, or not?",
            cnonce: "NTg6RKcb9boFIAS3KrFK9BGeh+iDa/sm6jUMp2wds69v", target: "/doe.json")
        let sent = try parameters(answer.value)
        #expect(sent["username"] == "793263caabb707a56211940d90411ea4a575adeccb7e360aeb624ed06ece9b0b")
        #expect(sent["response"] == "3798d4131c277846293534c3edc11bd8a5e4cdcbff78b05db9d95eeb1cec68a5")
        #expect(sent["userhash"] == "true")
    }

    @Test(
        "Each algorithm with auth and auth-int gives the response and proof that Python computes",
        arguments: [
            ("MD5", "auth", "64a0399678597f17fc4aadc9da17c32e", "d8efdbb6579577edee8e8a24627f5341"),
            ("MD5", "auth-int", "66b53c79b75509bda38051ca8b360b0f", "6ad4c371894dff10dd15bb35ec8f0d5b"),
            ("MD5-sess", "auth", "c93667b5235375b1d613f1d4b0a60559", "429d76346e14224e724624b5cf858082"),
            ("MD5-sess", "auth-int", "a3b348b93ae95412518822246ce9ac26", "67c5898113a51dad96de0910da2aec74"),
            (
                "SHA-256", "auth", "872a3c11df43e71a9500767575ff231ca6ce615bc8f6df4716e914084d09ea84",
                "7b2272d36889af10b828f2a6f5f96ae1b4d137a6ed36ce252773670fa8ac36b7"
            ),
            (
                "SHA-256", "auth-int", "426072b84b2d294d3ab54ed69f46afc73e2d18f01e847a58fbe2994c13f76cff",
                "5ceb1e92431a81d2745d2c7cc324b152d7a3a1fb0c5ee357abab998c6ce20be6"
            ),
            (
                "SHA-256-sess", "auth", "e2c6cd943e291ca91920e49d5cb670ce25292d35e8bd5344b90af049af424d65",
                "1090829382ca9822aec590f6225ac78bc50b93e9665ca207fefa81c22aead129"
            ),
            (
                "SHA-256-sess", "auth-int",
                "6a4003a80b14542ac1257f089c54a1c93fd71ab742a5c100d75790ca744b12be",
                "1764ee2632bd334577bc82a0bef60eaad7d7f53c783144a885b067ec80ed63f5"
            ),
            (
                "SHA-512-256", "auth", "9997649279210859ff049d6865aa92a822f03314215d125f379d2ce892342d9e",
                "04819dc21e7606f0de440fbe65e90a9001d21091a550d3caa7fe48934b107d8e"
            ),
            (
                "SHA-512-256", "auth-int", "aca11300af763322929b86722a936dd1ee387af20ec518ac52388cbac411676f",
                "5bee5d00e3aea0f314a17aab1af600e97327137ebfe68c452de0d93848e3bcc1"
            ),
            (
                "SHA-512-256-sess", "auth",
                "f041f044a70b0eac075693125a73e03a29f775e31ef1720284504e2747e76693",
                "339f194a207c449a8e8e291814aba4b721e1e4910384819bbef58688853f6695"
            ),
            (
                "SHA-512-256-sess", "auth-int",
                "88c5d2d1ad029ff3f453403927b614858b08704cb34626ed71d661ef10727f31",
                "2a3be21cc6bc74e3cda9c7f9fbba2f1ed4735d24440608adc2a7a4167be4e542"
            ),
        ])
    func matrix(_ algorithm: String, _ qop: String, _ response: String, _ proof: String) throws {
        let answer = try answer(
            "Digest realm=realm, nonce=nonce, algorithm=\(algorithm), qop=\(qop)", user: "user",
            password: "pass", cnonce: "cnonce", method: "POST", target: "/x?y=1",
            body: .bytes(Array("body".utf8)))
        let sent = try parameters(answer.value)
        #expect(sent["response"] == response && sent["qop"] == qop)
        #expect(!answer.proof.isRefuted(by: Array(proof.utf8)))
        #expect(!answer.proof.isRefuted(by: Array(proof.uppercased().utf8)))
        // A proof that covers the response's body is not checked.
        #expect(answer.proof.isRefuted(by: Array(response.utf8)) == (qop == "auth"))
        #expect(answer.proof.isRefuted(by: Array(proof.utf8.dropLast())) == (qop == "auth"))
        #expect(!answer.proof.isRefuted(by: nil))
    }

    @Test("Without qop, the response has no client nonce and no count (RFC 2069)")
    func legacy() throws {
        let answer = try answer(
            #"Digest realm="testrealm", nonce="1053604145""#, user: "testuser", password: "testpass",
            cnonce: "unused", target: "/3880001")
        #expect(
            text(answer)
                == #"Digest username="testuser", realm="testrealm", nonce="1053604145", uri="/3880001", "#
                + #"response="ea598bbfdb5c54b7352c977e3885e44d""#)
        #expect(!answer.proof.isRefuted(by: Array("00".utf8)))
    }

    @Test("Quotes and backslashes are escaped in the field but not in the hash")
    func quoting() throws {
        let answer = try answer(
            #"Digest realm="a\"b\\c", nonce="n\"", opaque="\\", qop=auth"#, user: #"u"\"#, password: "p",
            cnonce: "c", target: "/")
        let sent = text(answer)
        #expect(sent.contains(#"username="u\"\\", realm="a\"b\\c", nonce="n\"""#))
        #expect(sent.contains(#"opaque="\\""#))
        let read = try parameters(answer.value)
        #expect(read["realm"] == #"a"b\c"# && read["username"] == #"u"\"#)
    }

    @Test("A realm that is not UTF-8 is sent back byte for byte")
    func realmBytes() throws {
        let field = Array("Digest realm=\"".utf8) + [0xE4] + Array("\", nonce=n, qop=auth".utf8)
        let challenge = try #require(
            ChallengeParser.challenges(in: [field[...]]).challenges.lazy.compactMap(DigestChallenge.init)
                .first)
        let key = try DigestAuthorization.key(for: challenge, user: "u", password: "p", clientNonce: [])
        #expect(
            key
                == MessageDigest.hexadecimal(
                    try MessageDigest.digest(.md5, of: Array("u:".utf8) + [0xE4] + Array(":p".utf8))))
        let authorization = try #require(
            try DigestAuthorization(
                session: DigestSession(challenge: challenge, clientNonce: [], key: key), user: "u",
                request: try digested("GET", "/"), useCount: 1, clientNonce: [0x61]))
        #expect(authorization.value.bytes.contains(0xE4))
    }

    @Test("A non-ASCII user is sent as username* with charset=UTF-8, and as raw bytes without it")
    func extendedName() throws {
        let told = try answer(
            "Digest realm=r, nonce=n, qop=auth, charset=utf-8", user: "J\u{E4}s\u{F8}n Doe", password: "p",
            cnonce: "c", target: "/")
        #expect(text(told).hasPrefix("Digest username*=UTF-8''J%C3%A4s%C3%B8n%20Doe, realm="))
        let untold = try answer(
            "Digest realm=r, nonce=n, qop=auth", user: "J\u{E4}s", password: "p", cnonce: "c", target: "/")
        #expect(text(untold).hasPrefix("Digest username=\"J\u{E4}s\", "))
        let plain = try answer(
            "Digest realm=r, nonce=n, qop=auth, charset=UTF-8", user: "Jane", password: "p", cnonce: "c",
            target: "/")
        #expect(text(plain).hasPrefix("Digest username=\"Jane\", "))
    }

    @Test("The algorithm is sent back as the server wrote it, and omitted if the server omitted it")
    func algorithmText() throws {
        let written = try answer(
            #"Digest realm=r, nonce=n, qop="auth", algorithm="md5""#, user: "u", password: "p", cnonce: "c",
            target: "/")
        #expect(text(written).hasSuffix(", algorithm=md5"))
        let silent = try answer(
            "Digest realm=r, nonce=n, qop=auth", user: "u", password: "p", cnonce: "c", target: "/")
        #expect(!text(silent).contains("algorithm"))
    }

    @Test("An auth-int challenge gets no response if the body is unknown")
    func unknownBody() throws {
        let challenge = try #require(DigestChallenge(challenge("Digest realm=r, nonce=n, qop=auth-int")))
        let answer = try DigestAuthorization(
            session: DigestSession(challenge: challenge, clientNonce: [], key: []), user: "u",
            request: try digested("PUT", "/", .unknown), useCount: 1, clientNonce: [])
        #expect(answer?.value == nil)
    }

    @Test("The nonce count is sent as eight hexadecimal digits")
    func counts() throws {
        let challenge = try #require(DigestChallenge(challenge("Digest realm=r, nonce=n, qop=auth")))
        let session = DigestSession(challenge: challenge, clientNonce: [], key: [])
        let authorization = try #require(
            try DigestAuthorization(
                session: session, user: "u", request: try digested("GET", "/"),
                useCount: 0xAB_CDEF, clientNonce: Array("c".utf8)))
        #expect(try parameters(authorization.value)["nc"] == "00abcdef")
    }
}

@Suite("Digest challenge selection")
struct DigestChallengeTests {
    private func strongest(_ value: String, hasBodyDigest: Bool = true) -> String? {
        let challenges = ChallengeParser.challenges(in: [Array(value.utf8)[...]]).challenges
        return DigestChallenge.strongest(of: challenges, hasBodyDigest: hasBodyDigest).map {
            "\($0.algorithm.rawValue) \(String(decoding: $0.nonce, as: UTF8.self))"
        }
    }

    @Test("The challenge with the strongest algorithm is used, regardless of order")
    func strongestFirst() {
        let md5 = "Digest nonce=a, algorithm=MD5, qop=auth"
        let sha = "Digest nonce=b, algorithm=SHA-256, qop=auth"
        let best = "Digest nonce=c, algorithm=SHA-512-256, qop=auth"
        for list in [[md5, sha, best], [best, md5, sha], [sha, best, md5]] {
            #expect(strongest(list.joined(separator: ", ")) == "SHA-512-256 c")
        }
        #expect(strongest("\(md5), Basic realm=r, \(sha)") == "SHA-256 b")
        #expect(strongest("Digest nonce=x, qop=auth, Digest nonce=y, qop=auth") == "MD5 x")
    }

    @Test(
        "Challenges with an unknown algorithm or qop, or without a nonce, are skipped",
        arguments: [
            ("Digest nonce=a, algorithm=SHA-1, qop=auth", nil),
            ("Digest nonce=a, algorithm=SHA3-512, qop=auth, Digest nonce=b, qop=auth", "MD5 b"),
            ("Digest nonce=a, algorithm=token, qop=auth", nil),
            ("Digest nonce=a, qop=auth-conf", nil),
            (#"Digest nonce=a, qop="crazy, auth""#, "MD5 a"),
            (#"Digest nonce=a, qop=" auth-int ,,AUTH ""#, "MD5 a"),
            (#"Digest nonce=a, qop="""#, "MD5 a"),
            ("Digest realm=r, qop=auth", nil),
            ("Digest nonce=a, algorithm=MD5-sess", nil),
            ("Digest nonce=a, algorithm=md5-SESS, qop=auth", "MD5-sess a"),
            ("Basic realm=r, nonce=a", nil),
            ("Digest", nil), ("Digest abcd==", nil),
            (#"Digest nonce="", realm="""#, "MD5 "),
        ])
    func unknown(_ value: String, _ expected: String?) {
        #expect(strongest(value) == expected)
    }

    @Test("A challenge with only auth-int is skipped if the body is unknown")
    func insistsOnBody() {
        let both =
            "Digest nonce=a, algorithm=SHA-256, qop=auth-int, Digest nonce=b, algorithm=MD5, qop=\"auth,auth-int\""
        #expect(strongest(both) == "SHA-256 a")
        #expect(strongest(both, hasBodyDigest: false) == "MD5 b")
    }

    @Test("Flags are true only for the value true, without regard to case")
    func flags() throws {
        let loud = try #require(DigestChallenge(challenge("Digest nonce=n, stale=TRUE, userhash=\"True\"")))
        #expect(loud.isStale && loud.hashesUser)
        let quiet = try #require(DigestChallenge(challenge("Digest nonce=n, stale=\"FALSE\", userhash=1")))
        #expect(!quiet.isStale && !quiet.hashesUser)
    }
}
