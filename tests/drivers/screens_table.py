"""What each captured screen shows, reviewed by eye: the expected reading, then the names of the captures."""

from __future__ import annotations

CLAUDE: dict[str, str] = {
    "blocked apikey": """
        api_key_dialog firstrun_after_theme
    """,
    "blocked bypass": """
        bypass_dialog_80x24
    """,
    "blocked draft": """
        at_menu_120 esc_before_reply prompt_suggestion slash_menu_120 slash_menu_plugin slash_menu_skill
        stash_restored_120
    """,
    "blocked login": """
        api_key_refused apierr_401 apierr_403
    """,
    "blocked mcp": """
        mcp_approval_dialog
    """,
    "blocked permission": """
        permission_60 permission_bash_120
    """,
    "blocked plan": """
        plan_60 plan_dialog_byp plan_dialog_planA plan_dialog_planB
    """,
    "blocked question": """
        askuser_80 askuser_bypass askuser_multi_120
    """,
    "blocked resume": """
        flag_res2
    """,
    "blocked settings": """
        settings_bad1 settings_bad3 settings_bad4
    """,
    "blocked setup": """
        firstrun_after_apikey_1 firstrun_theme_80x24
    """,
    "blocked trust": """
        firstrun_after_security
    """,
    "busy": """
        apierr_429_default_retrying apierr_refused_retrying background_bash_120 background_bash_80
        busy_60 busy_streaming_120 busy_thinking_80 busy_tool_120 bypass_busy_120 bypass_busy_30
        bypass_busy_40 bypass_busy_50 bypass_busy_60 bypass_busy_70 bypass_busy_80 queued_120
        queued_no_tool queued_skill quiet_settings_busy resume_interrupted_turn_env subagent_bg_running
        subagent_running vim_busy vim_busy_after_escape vim_normal
    """,
    "compacting": """
        compacting_80 compacting_queued_80
    """,
    "idle": """
        after_compact_80 apierr_drop apierr_drop_retrying askuser_after_injection autocompacted_80
        autocompacting_80 background_done_120 bypass_after_2 bypass_idle_120 bypass_idle_30
        bypass_idle_40 bypass_idle_50 bypass_idle_60 bypass_idle_70 bypass_idle_80 ctrlc_mid_tool
        ctrlc_once_empty esc_mid_stream esc_mid_tool esc_with_queue firstrun_after_trust_1 fullscreen_80
        hook_allow_byp hook_allow_planA hook_timeout idle_after_turn_80 idle_fresh_120 idle_fresh_60
        idle_fresh_80 idle_plan_60 idle_planmode_100 inject_into_permission_dialog named_session
        plan_answered_byp plan_answered_planB plan_hook_allow_in_bypass queued_after_120
        quiet_settings_idle quiet_settings_idle_focus_on resume_after_sigkill resume_threshold_dialog
        resumed resumed_twice sessionstart_ctx shortcuts_help skill_sk1 skill_sk2 skill_sk3 skill_sk4
        skill_sk5 skill_sk6 skill_tool_unknown stash_120 subagent_done unknown_command_120 vim_insert
    """,
    "limited": """
        apierr_429 apierr_429_retrying apierr_529 apierr_529_default_retrying apierr_529_retrying
        apierr_stream apierr_stream_retrying
    """,
    "unknown": """
        apierr_400 apierr_500 apierr_500_retrying apierr_refused ax_screen_reader ax_screen_reader_busy
        background_done_80 config_dialog esc_esc_rewind exit_screen exit_xc exit_xd exit_xexit2
        exit_xhup exit_xint exit_xterm firstrun_1_theme flag_con1 flag_res1 flag_resx flag_sidbad
        hooks_effects idle_after_turn_60 left_arrow_agents_view root_bypass_refused session_id_in_use
        settings_bad2
    """,
}
"""Claude Code 2.1.197; 30 to 120 columns."""

CLAUDE_MORE: dict[str, str] = {
    "blocked apikey": """
        apikey_120 apikey_30 apikey_40 apikey_60
    """,
    "blocked bypass": """
        bypass_120 bypass_30 bypass_40 bypass_60
    """,
    "blocked draft": """
        draft_120 draft_30 draft_40 draft_60 shelldraft_120 shelldraft_30 shelldraft_40 shelldraft_60
        shellmode_120 shellmode_30 shellmode_40 shellmode_60 wrapdraft0_30 wrapdraft1_30 wrapdraft2_30
        wrapdraft3_30 wrapdraft4_30 wrapdraft5_30 wrapdraft6_30 wrapdraft7_30 wrapdraft8_30
    """,
    "blocked login": """
        login_120 login_30 login_60 nologin_120 nologin_30 nologin_40 nologin_60
    """,
    "blocked mcp": """
        mcp_120 mcp_30 mcp_40 mcp_60 mcpmulti_120 mcpmulti_30 mcpmulti_40 mcpmulti_60
    """,
    "blocked permission": """
        perm_bash_120 perm_bash_30 perm_bash_40 perm_bash_60 perm_edit_120 perm_edit_40 perm_edit_60
        perm_fetch_120 perm_fetch_30 perm_fetch_40 perm_fetch_60 perm_write_120 perm_write_30
        perm_write_40 perm_write_60 perm_write_down_120 perm_write_down_30 perm_write_down_40
        perm_write_down_60
    """,
    "blocked plan": """
        exitplan_empty_120 exitplan_empty_30 exitplan_empty_60 plan_120 plan_30 plan_40 plan_60
    """,
    "blocked question": """
        ask1_120 ask1_30 ask1_40 ask1_60 ask2_120 ask2_30 ask2_40 ask2_60 ask3_120 ask3_30 ask3_40
        ask3_60
    """,
    "blocked settings": """
        settingserr_120 settingserr_30 settingserr_40 settingserr_60 settingswarn_120 settingswarn_30
        settingswarn_40 settingswarn_60
    """,
    "blocked setup": """
        security_120 security_30 security_40 security_60 theme_120 theme_30 theme_40 theme_60
    """,
    "blocked trust": """
        includes_120 includes_30 includes_40 includes_60 trust_120 trust_30 trust_40 trust_60
    """,
    "busy": """
        busydraft_120 busydraft_30 busydraft_60 err401_120 err401_30 err401_60 retry_120 retry_30
        retry_40 retry_60 saydialog_120 saydialog_30 saydialog_60
    """,
    "idle": """
        fresh_120 fresh_30 fresh_40 fresh_60 longname_120 longname_30 longname_40 longname_60
        lookalike_permission_120 lookalike_permission_40 lookalike_permission_60 lookalike_question_120
        lookalike_question_40 lookalike_question_60 lookalike_trust_120 lookalike_trust_40
        lookalike_trust_60
    """,
    "unknown": """
        agents_120 agents_30 agents_60 model_120 model_30 model_40 model_60 permissions_120
        permissions_30 permissions_60 transcript_120 transcript_30 transcript_40 transcript_60
    """,
}
"""Claude Code 2.1.197, dialogs and menus at 120, 60, 40 and 30 columns (the number at the end)."""

CLAUDELESS: dict[str, str] = {
    "blocked bypass": """
        bypass_120 bypass_40 bypass_60 bypass_down_120 bypass_down_40 bypass_down_60
    """,
    "blocked login": """
        login_120 login_40 login_60
    """,
    "blocked permission": """
        perm_tool_120 perm_tool_40 perm_tool_60 perm_write_120 perm_write_40 perm_write_60
    """,
    "blocked setup": """
        theme_120 theme_40 theme_60
    """,
    "blocked trust": """
        trust_120 trust_40 trust_60
    """,
    "idle": """
        after_hello_120 after_hello_40 after_hello_60 after_malf_120 after_malf_40 after_malf_60
        after_partial_120 after_partial_40 after_partial_60 bypassmode_120 bypassmode_40 bypassmode_60
        ctrlc_120 ctrlc_40 ctrlc_60 fresh_120 fresh_40 fresh_60 planmode_120 planmode_40 planmode_60
        turn_over_120 turn_over_40 turn_over_60
    """,
    "limited": """
        after_limit_120 after_limit_40 after_limit_60
    """,
    "unknown": """
        after_auth_120 after_auth_40 after_auth_60 after_conn_120 after_conn_40 after_conn_60
        after_credits_120 after_credits_40 after_credits_60 after_net_120 after_net_40 after_net_60
        ask_120 ask_40 ask_60 startturn_120 startturn_40 startturn_60 turn_40 turn_60 typed_120 typed_40
        typed_60
    """,
}
"""claudeless 0.2.2 at 120, 60 and 40 columns."""
