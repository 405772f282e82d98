import API
import HTTPServer
import Primitives
import Testing

@testable import gateway

@Suite struct SiteTests {
  @Test("P6 following a link, however often, asks no service to do anything")
  func looking() async throws {
    try await GatewayFixture.with { fixture async throws in
      let paths =
        fixture.pages + [
          "/message/\(fixture.token)/open", "/message/\(fixture.token)/acknowledge", "/", "/style.css", "/healthz",
        ]
      for method in ["GET", "HEAD", "OPTIONS", "PUT", "DELETE"] {
        for path in paths {
          // Even with everything that a form would bring.
          var request = try await fixture.submission(fixture.pages[1])
          request.method = method
          request.segments = path.split(separator: "/").map(String.init)
          _ = await fixture.site.answer(request)
        }
      }
      #expect(fixture.backend.state.effects.isEmpty)
      for page in fixture.pages { #expect(await fixture.get(page).status == 200) }
    }
  }

  @Test("GW-35 GW-36 GW-37 a person who presses a button gets it done")
  func pressing() async throws {
    try await GatewayFixture.with { fixture in
      for (page, index, done) in [
        (fixture.pages[0], 0, "Thank you, Karl"), (fixture.pages[1], 0, "You have accepted"),
        (fixture.pages[1], 1, "You have declined"), (fixture.pages[2], 0, "<strong>you</strong>"),
      ] {
        let response = await fixture.site.answer(try await fixture.submission(page, index: index))
        #expect(response.status == 200 && response.text.contains(done))
      }
      let effects = fixture.backend.state.effects.map { $0.split(separator: " ").dropLast().joined(separator: " ") }
      #expect(effects == ["verify", "answer true", "answer false", ""])
      #expect(fixture.backend.state.effects.last == "open")
    }
  }

  @Test("DE-16 a message is acknowledged from its own page, which then says so")
  func acknowledging() async throws {
    try await GatewayFixture.with { fixture in
      let open = try await fixture.submission(fixture.pages[2])
      let page = await fixture.site.answer(open)
      let form = try #require(page.text.forms.first)
      #expect(form.action == "/message/\(fixture.token)/acknowledge")
      let response = await fixture.site.answer(
        fixture.request("POST", form.action, cookies: open.cookies, form: form.fields))
      #expect(response.text.contains("You acknowledged this on 2 January 1970."))
      #expect(response.text.forms.isEmpty)
    }
  }

  @Test("GW-35 a form without its token, or from elsewhere, is refused and nothing is asked")
  func foreignForms() async throws {
    try await GatewayFixture.with { fixture in
      for page in fixture.pages {
        let good = try await fixture.submission(page)
        var bad: [HTTPRequest] = []
        func add(_ change: (inout HTTPRequest) -> Void) {
          var request = good
          change(&request)
          bad.append(request)
        }
        add { $0.form["form_token"] = nil }
        add { $0.form["form_token"] = "\(Identifier())" }
        add { $0.form["form_token"] = "" }
        add { $0.cookies = [:] }
        add { $0.cookies = ["__Host-form": "\(Identifier())"] }
        add { $0.cookies = ["form": $0.form["form_token"] ?? ""] }
        add { $0.headers["sec-fetch-site"] = "cross-site" }
        add { $0.headers["sec-fetch-site"] = "same-site" }
        add { $0.headers["sec-fetch-site"] = "none" }
        add { $0.headers["origin"] = "https://elsewhere.example" }
        add { $0.headers["origin"] = "http://afterthoughts.example" }
        add { $0.headers["origin"] = "https://afterthoughts.example.elsewhere.example" }
        for request in bad {
          let response = await fixture.site.answer(request)
          #expect(response.status == 403)
        }
      }
      #expect(fixture.backend.state.effects.isEmpty)
      // Neither header has to be there, and the site's own origin is fine.
      var plain = try await fixture.submission(fixture.pages[2])
      plain.headers = [:]
      #expect(await fixture.site.answer(plain).status == 200)
      plain.headers = ["origin": GatewayFixture.publicURL]
      #expect(await fixture.site.answer(plain).status == 200)
    }
  }

  @Test("GW-36 a form that is sent twice is one request; two forms, and two visits, are two")
  func requestIDs() async throws {
    try await GatewayFixture.with { fixture in
      let accept = try await fixture.submission(fixture.pages[1])
      for _ in 0..<2 { _ = await fixture.site.answer(accept) }
      #expect(Set(fixture.backend.state.effects).count == 1 && fixture.backend.state.effects.count == 2)
      let page = await fixture.get(fixture.pages[1])
      let ids = page.text.forms.map { $0.fields["request_id"] ?? "" }
      #expect(ids.count == 2 && Set(ids).count == 2 && ids.allSatisfy { Identifier($0) != nil })
      #expect(Set(page.text.forms.map { $0.fields["form_token"] }).count == 1)
      #expect(
        await fixture.get(fixture.pages[1]).text.forms.allSatisfy { !ids.contains($0.fields["request_id"] ?? "") })
      for id in [nil, "", "x"] {
        var broken = accept
        broken.form["request_id"] = id
        #expect(await fixture.site.answer(broken).status == 403)
      }
    }
  }

  @Test("GW-36 an answer that is neither yes nor no is refused")
  func noAnswer() async throws {
    try await GatewayFixture.with { fixture in
      var request = try await fixture.submission(fixture.pages[1])
      for answer in [nil, "", "maybe"] {
        request.form["answer"] = answer
        #expect(await fixture.site.answer(request).status == 400)
      }
      #expect(fixture.backend.state.effects.isEmpty)
    }
  }

  @Test("GW-35 a browser keeps its token from page to page")
  func cookie() async throws {
    try await GatewayFixture.with { fixture in
      let first = await fixture.get(fixture.pages[0])
      let cookie = try #require(first.cookie)
      #expect(first.header("Set-Cookie")?.hasSuffix("; Path=/; HttpOnly; SameSite=Strict; Secure") == true)
      #expect(cookie.name == "__Host-form")
      let second = await fixture.get(fixture.pages[1], cookies: [cookie.name: cookie.value])
      #expect(second.cookie == nil)
      #expect(second.text.forms.allSatisfy { $0.fields["form_token"] == cookie.value })
      let forged = await fixture.get(fixture.pages[1], cookies: [cookie.name: "\"><script>"])
      #expect(forged.cookie != nil && !forged.text.contains("<script"))
      #expect(await fixture.get("/").cookie == nil)
    }
  }

  @Test("GW-35 what cannot be a link of ours is not found, and no service is asked")
  func noLinks() async throws {
    try await GatewayFixture.with { fixture async throws in
      let token = fixture.token
      for segment in [
        "x", token + "A", String(token.dropLast()), String(token.dropLast()) + "\r", String(token.dropLast()) + "/",
      ] {
        for first in ["verify", "prompt", "message"] {
          var request = fixture.request("GET", "/\(first)")
          request.segments = [first, segment]
          #expect(await fixture.site.answer(request).status == 404)
          request.segments.append("open")
          #expect(await fixture.site.answer(request).status == 404)
        }
      }
      for path in ["/verify", "/verify/\(token)/x", "/message/\(token)/open/x", "/message/\(token)/x", "/nothing"] {
        #expect(await fixture.get(path).status == 404)
      }
      #expect(fixture.backend.state.looks == 0)
      let reload = await fixture.get("/message/\(token)/open")
      #expect(reload.status == 303 && reload.header("Location") == "/message/\(token)")
    }
  }

  @Test("GW-35 each kind of failure has its page")
  func failures() async throws {
    try await GatewayFixture.with { fixture async throws in
      let wait = ServiceError(.resourceExhausted, "Too often.", retryAfter: .seconds(30))
      for (failure, status, retry) in [
        (ServiceError.notFound("link"), 404, nil), (.unavailable("x"), 503, "5"), (wait, 429, "30"),
        (.precondition("X", "Not now."), 400, nil), (.internal(cause: wait), 500, nil), (.denied(), 403, nil),
      ] as [(ServiceError, Int, String?)] {
        fixture.backend.set { $0.failure = failure }
        let response = await fixture.get(fixture.pages[2])
        #expect(response.status == status && response.header("Retry-After") == retry)
        #expect(response.text.contains("<h1>"))
      }
    }
  }

  @Test("GW-35 while the services are away the page says that nothing is lost")
  func away() async throws {
    try await GatewayFixture.with(services: false) { fixture async throws in
      for page in fixture.pages.dropFirst() {
        let response = await fixture.get(page)
        #expect(response.status == 503 && response.text.contains("Nothing is lost"))
      }
      #expect(await fixture.get("/healthz").status == 200)
    }
  }

  @Test("3.17 names, titles and texts with markup stay text")
  func escaping() async throws {
    try await GatewayFixture.with { fixture in
      let markup = "<script>alert(1)</script>\"'&<!--hidden fields-->"
      for type in [DeliveryV1.DeliveredType.letter, .note] {
        fixture.backend.set { state in
          (state.senderName, state.title, state.type) = (markup, markup, type)
          state.body = markup + "\n\n[x](javascript:alert(1))\n\n" + markup
        }
        var responses: [HTTPResponse] = []
        for page in fixture.pages {
          responses.append(await fixture.get(page))
          responses.append(await fixture.site.answer(try await fixture.submission(page)))
        }
        for response in responses {
          #expect(response.status == 200 && !response.text.contains("<script"))
          #expect(!response.text.contains("href=\"javascript:"))
          // What a person wrote never stands where a form's token goes.
          #expect(response.text.pieces(between: "name=\"form_token\"", and: ">").count == response.text.forms.count)
        }
      }
    }
  }

  @Test("3.17 every response carries the headers that keep it to itself", arguments: [true, false])
  func headers(_ isSecure: Bool) async throws {
    let publicURL = isSecure ? "https://afterthoughts.example" : "http://127.0.0.1:7180"
    try await GatewayFixture.with(publicURL: publicURL) { fixture async throws in
      let paths = fixture.pages + ["/", "/style.css", "/healthz", "/nothing", "/message/\(fixture.token)/open"]
      var responses: [HTTPResponse] = []
      for path in paths { responses.append(await fixture.get(path)) }
      responses.append(await fixture.site.answer(fixture.request("POST", fixture.pages[0])))
      for response in responses {
        #expect(response.header("Cache-Control") == "no-store")
        #expect(response.header("Referrer-Policy") == "no-referrer")
        #expect(response.header("X-Robots-Tag") == "noindex")
        #expect(response.header("X-Content-Type-Options") == "nosniff")
        let policy = response.header("Content-Security-Policy") ?? ""
        for part in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
          #expect(policy.contains(part))
        }
        #expect((response.header("Strict-Transport-Security") != nil) == isSecure)
      }
    }
  }

  @Test("GW-35 dates are read in UTC and written out")
  func dates() {
    #expect(Page.date(Instant(seconds: 0)) == "1 January 1970")
    #expect(Page.date(Instant(seconds: -1)) == "31 December 1969")
    #expect(Page.date(Instant(seconds: 86_399)) == "1 January 1970")
    #expect(Page.date(Instant(seconds: 1_798_761_600)) == "1 January 2027")
  }
}
