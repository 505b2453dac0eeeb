import Foundation
import Martlet
import Testing

@testable import MartletAuthentication

@Suite("Token responses of OAuth 2.0")
struct OAuthTokenResponseTests {
    @Test(
        "A bearer token is accepted with its lifetime and refresh token",
        arguments: [
            (#"{"access_token":"a.b-c_d~+/==","token_type":"Bearer","expires_in":3600}"#, "a.b-c_d~+/==", 3600, nil),
            (#"{"access_token":"a","token_type":"bEARER","expires_in":"60","refresh_token":"r"}"#, "a", 60, "r"),
            (#"{"access_token":"a","token_type":null,"expires_in":null,"refresh_token":null}"#, "a", nil, nil),
            (#"{"access_token":"a","expires_in":1.5e1,"refresh_token":""}"#, "a", 15, nil),
            (#"{"access_token":"a","expires_in":"soon"}"#, "a", nil, nil),
            (#"{"access_token":"a","expires_in":0}"#, "a", nil, nil),
            (#"{"access_token":"a","expires_in":-5}"#, "a", nil, nil),
            (#"{"access_token":"a","expires_in":"nan"}"#, "a", nil, nil),
            (#"{"access_token":"a","expires_in":1e300}"#, "a", 315_360_000, nil),
            (#"{"access_token":"a","expires_in":"inf"}"#, "a", 315_360_000, nil),
            (#"{"access_token":"a","expires_in":9999999999999999999999}"#, "a", 315_360_000, nil),
        ] as [(String, String, Int?, String?)])
    func accepted(body: String, token: String, seconds: Int?, refreshToken: String?) throws {
        let response = try OAuthTokenResponse(status: 200, body: Array(body.utf8))
        #expect(response.accessToken == token)
        #expect(response.lifetime == seconds.map { .seconds($0) })
        #expect(response.refreshToken == refreshToken)
    }

    @Test(
        "A response that is no bearer token is an error with the server's code, or invalid_response",
        arguments: [
            (
                400, #"{"error":"invalid_grant","error_description":"gone","error_uri":"https://e.org/1"}"#,
                "invalid_grant"
            ),
            (401, #"{"error":"invalid_client"}"#, "invalid_client"), (200, #"{"error":"bad_code"}"#, "bad_code"),
            (200, #"{"error":"slow_down","access_token":"a"}"#, "slow_down"),
            (400, #"{"error":7}"#, "invalid_response"), (400, #"{"error":""}"#, "invalid_response"),
            (400, #"{"access_token":"a"}"#, "invalid_response"), (307, "{}", "invalid_response"),
            (502, "<html>", "invalid_response"), (200, "", "invalid_response"), (200, "[]", "invalid_response"),
            (200, #"{"access_token":""}"#, "invalid_response"), (200, #"{"access_token":5}"#, "invalid_response"),
            (200, #"{"access_token":"a","token_type":"mac"}"#, "invalid_response"),
            (200, #"{"access_token":"a\r\nX-Evil: 1"}"#, "invalid_response"),
            (200, #"{"access_token":"a b"}"#, "invalid_response"), (200, #"{"access_token":"=="}"#, "invalid_response"),
            (200, #"{"access_token":"a=b"}"#, "invalid_response"), (200, #"{"access_token":"é"}"#, "invalid_response"),
            (200, String(repeating: "[", count: 100_000), "invalid_response"),
        ])
    func rejected(status: Int, body: String, code: String) throws {
        let error = try #require(
            #expect(throws: OAuthError.self) { try OAuthTokenResponse(status: status, body: Array(body.utf8)) })
        #expect(error.code == OAuthError.Code(rawValue: code))
        #expect(error.status == status)
        #expect(error.description.contains(code))
        if status == 400, code == "invalid_grant" {
            #expect(error.message == "gone")
            #expect(error.uri == "https://e.org/1")
        }
    }

    @Test("Texts of the server are bounded, escaped, and without the secrets of the request")
    func texts() throws {
        let long = String(repeating: "x", count: 10_000)
        let body =
            #"{"error":"no s3cret","error_description":"\u001b[2J for s3cret r3fresh \#(long)","error_uri":"s3cret"}"#
        let error = try #require(
            #expect(throws: OAuthError.self) {
                try OAuthTokenResponse(status: 400, body: Array(body.utf8), hiding: ["s3cret", "", "r3fresh"])
            })
        for text in ["\(error)", error.localizedDescription, error.message ?? "", error.uri ?? "", error.code.rawValue]
        {
            #expect(!text.contains("s3cret") && !text.contains("r3fresh") && !text.contains("\u{1B}"))
            #expect(text.utf8.count < 1000)
        }
        #expect(error.message?.hasPrefix("\\u{1B}[2J for *** ***") == true)
    }
}
